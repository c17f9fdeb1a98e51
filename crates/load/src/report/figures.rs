//! The figures of a page: those of one outcome as tiles, those of two as a table.

use super::html::Html;
use crate::compare::{BetterSide, ComparedFigure, Comparison};
use crate::outcome::{Better, Figure, ScenarioReport};
use crate::output::number::{digits, short};

/// Writes a tile for each figure: its median, its range, and where each run lies.
pub(super) fn tiles(page: &mut Html, outcome: &ScenarioReport) {
    page.raw("<section class=\"tiles\">\n");
    for (name, figure) in &outcome.summary {
        page.raw("<div class=\"tile\"><h3>")
            .text(name)
            .raw("</h3><p class=\"value\"><b>");
        page.text(digits(figure.median))
            .raw("</b> ")
            .text(&figure.unit);
        page.raw("</p><p class=\"range\">");
        range(page, figure);
        direction(page, figure.better);
        page.raw("</p>");
        let runs = outcome.runs.iter().filter_map(|run| run.figures.get(name));
        let values: Vec<f64> = runs.map(|sample| sample.value).collect();
        strip(page, figure, &values);
        page.raw("</div>\n");
    }
    page.raw("</section>\n");
}

/// Writes the runs as dots on a line that begins at zero, with the range between them.
fn strip(page: &mut Html, figure: &Figure, values: &[f64]) {
    const WIDTH: f64 = 1_000.0;
    let place = |value: f64| match figure.max > 0.0 {
        true => (value / figure.max).clamp(0.0, 1.0) * WIDTH,
        false => 0.0,
    };
    page.raw("<svg class=\"strip\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    page.raw("<path class=\"track\" d=\"M0 5H1000\"/>");
    let (from, to) = (place(figure.min), place(figure.max));
    page.raw("<path class=\"span\" d=\"")
        .text(format_args!("M{from:.1} 5H{to:.1}"))
        .raw("\"/>");
    for (number, value) in values.iter().enumerate() {
        let x = place(*value);
        page.raw("<path class=\"dot\" d=\"")
            .text(format_args!("M{x:.1} 5h0"))
            .raw("\"><title>");
        page.text(format_args!(
            "run {}: {} {}",
            number + 1,
            short(*value),
            figure.unit
        ));
        page.raw("</title></path>");
    }
    page.raw("</svg>");
}

fn range(page: &mut Html, figure: &Figure) {
    page.text(digits(figure.min))
        .raw(" \u{2026} ")
        .text(digits(figure.max));
}

/// Writes which values are better, behind something else.
fn direction(page: &mut Html, better: Better) {
    if let Some(word) = better.word() {
        page.raw(", ").raw(word).raw(" is better");
    }
}

/// Writes both medians and ranges of each figure, and which is better.
pub(super) fn comparison(page: &mut Html, comparison: &Comparison) {
    let [left, right] = [&comparison.left.name, &comparison.right.name];
    page.raw("<section class=\"scroll\"><table class=\"figures\"><thead><tr><th>figure</th><th class=\"c0\">");
    page.text(left).raw("</th><th class=\"c1\">").text(right);
    page.raw("</th><th>ratio</th><th>better</th></tr></thead><tbody>\n");
    for row in &comparison.rows {
        page.raw("<tr><th>")
            .text(&row.name)
            .raw("<small>")
            .text(&row.unit);
        direction(page, row.better);
        page.raw("</small></th>");
        for (figure, standing) in [
            (&row.left, BetterSide::Left),
            (&row.right, BetterSide::Right),
        ] {
            page.raw(if row.standing == standing {
                "<td class=\"better\">"
            } else {
                "<td>"
            });
            side(page, figure.as_ref());
            page.raw("</td>");
        }
        page.raw("<td>").text(row.ratio_text()).raw("</td>");
        standing(page, row, left, right);
        page.raw("</tr>\n");
    }
    page.raw("</tbody></table></section>\n");
}

fn side(page: &mut Html, figure: Option<&Figure>) {
    match figure {
        Some(figure) => {
            page.raw("<b>")
                .text(digits(figure.median))
                .raw("</b><small>");
            range(page, figure);
            page.raw("</small>");
        }
        None => {
            page.raw("not measured");
        }
    }
}

fn standing(page: &mut Html, row: &ComparedFigure, left: &str, right: &str) {
    match row.standing {
        BetterSide::Left => page.raw("<td class=\"c0 winner\">").text(left),
        BetterSide::Right => page.raw("<td class=\"c1 winner\">").text(right),
        BetterSide::Tie => page.raw("<td>tie"),
        BetterSide::Unknown => page.raw("<td>\u{2013}"),
    };
    page.raw("</td>");
}
