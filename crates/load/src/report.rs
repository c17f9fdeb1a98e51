//! The report page: an outcome, or two of them side by side, as one HTML file.
//!
//! It holds everything it shows: no script, no font, no picture comes from elsewhere, and its own
//! security policy forbids the browser to ask for any. It follows the reader's colour scheme, fits a
//! phone, and can be printed.

mod chart;
mod charts;
mod figures;
mod html;
mod scale;
mod timeline;

use self::chart::Chart;
use self::html::Html;
use crate::compare::{Comparison, Side};
use crate::outcome::{ScenarioReport, ScenarioVerdict};
use crate::output::number::{count, short};
use crate::output::parameter;

/// The most reasons of a failure, and the most differing parameters, that a page shows.
const SHOWN_MAX: usize = 50;

/// Writes the page of an outcome, which loads nothing from the network.
pub(crate) fn page(outcome: &ScenarioReport) -> String {
    let mut page = begin(&format!("ringwatch load: {}", outcome.scenario));
    page.raw("<header><p class=\"kicker\">ringwatch load</p><h1>")
        .text(&outcome.scenario);
    page.raw("</h1><p>")
        .text(&outcome.started)
        .raw("</p></header>\n");
    verdict(&mut page, outcome, None);
    warnings(&mut page, &outcome.warnings);
    page.raw(
        "<h2>Figures</h2><p class=\"about\">median over the runs, least and most; a dot is a run",
    );
    page.raw(if outcome.has_passed() {
        "</p>\n"
    } else {
        "; those of a run that failed are zero</p>\n"
    });
    figures::tiles(&mut page, outcome);
    write_charts(&mut page, &charts::outcome_charts(outcome));
    runs(&mut page, outcome);
    setting(&mut page, outcome);
    end(page, &[outcome])
}

/// Writes the page of two outcomes side by side, which loads nothing from the network.
pub(crate) fn comparison_page(comparison: &Comparison) -> String {
    let sides = [&comparison.left, &comparison.right];
    let scenario = &comparison.left.outcome.scenario;
    let mut page = begin(&format!("ringwatch load: {scenario}, two outcomes"));
    page.raw("<header><p class=\"kicker\">ringwatch load compare</p><h1>")
        .text(scenario);
    page.raw("</h1><p><span class=\"c0 name\">")
        .text(&sides[0].name)
        .raw("</span> ");
    page.text(&sides[0].outcome.started)
        .raw(" and <span class=\"c1 name\">")
        .text(&sides[1].name);
    page.raw("</span> ")
        .text(&sides[1].outcome.started)
        .raw("</p></header>\n");
    for side in sides {
        verdict(&mut page, &side.outcome, Some(&side.name));
    }
    for side in sides {
        let of = |warning: &String| format!("{}: {warning}", side.name);
        let told: Vec<String> = side.outcome.warnings.iter().map(of).collect();
        warnings(&mut page, &told);
    }
    differences(&mut page, comparison);
    page.raw("<h2>Figures</h2><p class=\"about\">median over the runs, least and most; less than 20&#8239;% apart, or overlapping ranges, is a tie</p>\n");
    figures::comparison(&mut page, comparison);
    let named = sides.map(|Side { name, outcome }| (name.as_str(), outcome));
    write_charts(&mut page, &charts::comparison_charts(named));
    for side in sides {
        page.raw("<h2>").text(&side.name).raw("</h2>\n");
        runs(&mut page, &side.outcome);
        setting(&mut page, &side.outcome);
    }
    end(page, &sides.map(|side| &side.outcome))
}

fn begin(title: &str) -> Html {
    let mut page = Html::default();
    page.raw("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    page.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n");
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.raw("<meta name=\"color-scheme\" content=\"light dark\">\n<title>")
        .text(title);
    page.raw("</title>\n<style>\n")
        .raw(include_str!("report/style.css"))
        .raw("</style></head>\n<body><main>\n");
    page
}

fn end(mut page: Html, outcomes: &[&ScenarioReport]) -> String {
    let mut versions: Vec<&str> = outcomes.iter().map(|it| it.ringwatch.as_str()).collect();
    versions.dedup();
    page.raw("<footer>measured by ringwatch ")
        .text(versions.join(" and "));
    page.raw("; this page loads nothing from the network</footer>\n</main></body></html>\n");
    page.finish()
}

/// Writes the verdict; a failure cannot be overlooked.
fn verdict(page: &mut Html, outcome: &ScenarioReport, name: Option<&str>) {
    let received = count(outcome.runs.iter().map(|run| run.received).sum());
    let expected = count(outcome.runs.iter().map(|run| run.expected).sum());
    let passed = outcome.has_passed();
    page.raw(if passed {
        "<section class=\"verdict passed\"><h2>"
    } else {
        "<section class=\"verdict failed\"><h2>"
    });
    if let Some(name) = name {
        page.text(name).raw(": ");
    }
    page.raw(if passed { "Passed" } else { "FAILED" })
        .raw("</h2><p>");
    page.text(&received).raw(" of ").text(&expected);
    match &outcome.verdict {
        ScenarioVerdict::Passed => {
            page.raw(" events and answers came, once and in order</p>");
        }
        ScenarioVerdict::Failed { reasons } => {
            page.raw(
                " events and answers came. The figures of a run that failed are zero.</p><ul>",
            );
            list(page, reasons);
            page.raw("</ul>");
        }
    }
    page.raw("</section>\n");
}

fn warnings(page: &mut Html, warnings: &[String]) {
    if warnings.is_empty() {
        return;
    }
    page.raw("<section class=\"warnings\"><h2>What makes the figures doubtful</h2><ul>");
    list(page, warnings);
    page.raw("</ul></section>\n");
}

fn list(page: &mut Html, texts: &[String]) {
    for text in texts.iter().take(SHOWN_MAX) {
        page.raw("<li>").text(text).raw("</li>");
    }
    if let Some(more) = texts.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        page.raw("<li>and ").text(more).raw(" more</li>");
    }
}

fn differences(page: &mut Html, comparison: &Comparison) {
    if comparison.differences.is_empty() {
        return;
    }
    page.raw("<section class=\"warnings\"><h2>The settings differ</h2><ul>");
    let told: Vec<String> = comparison
        .differences
        .iter()
        .map(ToString::to_string)
        .collect();
    list(page, &told);
    page.raw("</ul></section>\n");
}

fn write_charts(page: &mut Html, charts: &[Chart]) {
    page.raw("<section class=\"charts\">\n");
    charts.iter().for_each(|chart| chart.write(page));
    page.raw("</section>\n");
}

fn runs(page: &mut Html, outcome: &ScenarioReport) {
    page.raw(
        "<h2>Runs</h2>\n<section class=\"scroll\"><table><thead><tr><th>run</th><th>seconds</th>",
    );
    page.raw("<th>received</th><th>expected</th><th>whole</th></tr></thead><tbody>\n");
    for (number, run) in outcome.runs.iter().enumerate() {
        page.raw(if run.is_whole() {
            "<tr><th>"
        } else {
            "<tr class=\"broken\"><th>"
        });
        page.text(number + 1)
            .raw("</th><td>")
            .text(short(run.seconds));
        page.raw("</td><td>")
            .text(count(run.received))
            .raw("</td><td>")
            .text(count(run.expected));
        page.raw(if run.is_whole() {
            "</td><td>yes"
        } else {
            "</td><td>no, scores zero"
        })
        .raw("</td></tr>\n");
    }
    page.raw("</tbody></table></section>\n");
}

fn setting(page: &mut Html, outcome: &ScenarioReport) {
    page.raw("<h2>Setting</h2>\n<dl>");
    for (name, value) in &outcome.setting {
        page.raw("<div><dt>")
            .text(parameter::name(name))
            .raw("</dt><dd>")
            .text(parameter::value(name, value));
        page.raw("</dd></div>\n");
    }
    page.raw("</dl>\n");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::outcome::Run;

    fn outcome(run: Run) -> ScenarioReport {
        let setting =
            BTreeMap::from([("<watchers>".to_owned(), "<script>alert(1)</script>".into())]);
        let warnings = vec!["<img src=x>".to_owned()];
        ScenarioReport::new(
            "<b>fanout",
            "<i>now".to_owned(),
            setting,
            vec![run],
            warnings,
        )
    }

    #[test]
    fn what_is_told_is_never_markup() {
        let mut run = Run {
            faults: vec!["<iframe>".to_owned()],
            ..Run::default()
        };
        run.lower("<u>p99", "<s>ms", 1.0);
        let page = page(&outcome(run));
        for markup in [
            "<b>fanout",
            "<i>now",
            "<script",
            "<img",
            "<iframe",
            "<u>p99",
            "<s>ms",
        ] {
            assert!(!page.contains(markup), "{markup} in {page}");
        }
        assert!(page.contains("&lt;iframe&gt;"), "{page}");
    }

    #[test]
    fn a_failure_is_said_first_and_shows_zeros() {
        let mut run = Run {
            expected: 5,
            received: 4,
            ..Run::default()
        };
        run.lower("p99", "ms", 3.25);
        let page = page(&outcome(run));
        assert!(
            page.contains("verdict failed") && page.contains("FAILED"),
            "{page}"
        );
        assert!(page.contains("4 of 5") && page.contains("run 1: 4 received of 5"));
        assert!(!page.contains("3.25"), "{page}");
        let [verdict, figures] = ["FAILED", "<h2>Figures"].map(|it| page.find(it));
        assert!(verdict < figures);
    }

    #[test]
    fn nothing_is_asked_of_the_network() {
        let page = page(&outcome(Run::default()));
        for asking in ["http://", "https://", "url(", "@import", "src=", "href="] {
            assert!(
                !page.replace("&lt;img src=x&gt;", "").contains(asking),
                "{asking}"
            );
        }
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn a_long_list_is_cut_and_says_so() {
        let faults = (0..60).map(|number| format!("fault {number}")).collect();
        let page = page(&outcome(Run {
            faults,
            ..Run::default()
        }));
        assert!(page.contains("and 10 more"), "{page}");
    }
}
