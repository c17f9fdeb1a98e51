//! A chart: an SVG of curves alone, stretched to whatever room there is, with its words in HTML, which
//! stay as large as other text on a phone and on paper.
//!
//! It is drawn here since what chart libraries write has fixed sizes and colours, which follow neither
//! the reader's colour scheme nor the width of the window.

use super::html::Html;
use super::scale::{Scale, Tick};
use super::timeline::Slot;

/// The number of colours in the style sheet.
const COLOURS: usize = 8;

/// The SVG's own width and height.
const SIDE: f64 = 1_000.0;

/// The most points of a curve that show their value under the pointer.
const SHOWN_MAX: usize = 240;

/// Curves over a horizontal and a vertical axis.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// The description of the axes.
    pub(super) about: String,
    pub(super) scale: Scale,
    pub(super) ticks: Vec<Tick>,
    pub(super) slots: Vec<Slot>,
    pub(super) curves: Vec<Curve>,
}

/// A line, or several of one colour.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) label: String,
    pub(super) colour: usize,
    /// True if the area under it is tinted.
    pub(super) is_filled: bool,
    pub(super) lines: Vec<Vec<Point>>,
    /// The text in place of a curve without points.
    pub(super) absent: &'static str,
}

/// A point of a curve.
#[derive(Debug)]
pub(super) struct Point {
    /// From 0 to 1.
    pub(super) x: f64,
    pub(super) value: f64,
    /// The text under the pointer.
    pub(super) about: String,
}

impl Chart {
    pub(super) fn write(&self, page: &mut Html) {
        page.raw("<figure class=\"chart\" id=\"").text(self.id);
        page.raw("\"><figcaption><h3>").text(self.title);
        page.raw("</h3><p>")
            .text(&self.about)
            .raw("</p><ul class=\"legend\">");
        for curve in &self.curves {
            page.raw("<li class=\"c").text(curve.colour % COLOURS);
            page.raw("\">").text(&curve.label);
            if curve.lines.is_empty() {
                page.raw(" <em>").raw(curve.absent).raw("</em>");
            }
            page.raw("</li>");
        }
        page.raw("</ul></figcaption><div class=\"plot\">");
        self.write_picture(page);
        self.write_words(page);
        page.raw("</div></figure>\n");
    }

    fn write_picture(&self, page: &mut Html) {
        page.raw("<svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"");
        page.text(self.title).raw("\">");
        for slot in self.slots.iter().filter(|slot| slot.is_lost) {
            let (from, width) = (slot.from * SIDE, (slot.to - slot.from) * SIDE);
            page.raw("<path class=\"lost\" d=\"")
                .text(format_args!("M{from:.1} 0h{width:.1}V1000h-{width:.1}z"));
            page.raw("\"/>");
        }
        for tick in self.scale.ticks() {
            let y = height(tick.at);
            page.raw("<path class=\"grid\" d=\"")
                .text(format_args!("M0 {y:.1}H1000"))
                .raw("\"/>");
        }
        let inner = self.slots.iter().skip(1).map(|slot| slot.from);
        for x in self.ticks.iter().map(|tick| tick.at).chain(inner) {
            let x = x * SIDE;
            page.raw("<path class=\"grid\" d=\"")
                .text(format_args!("M{x:.1} 0V1000"))
                .raw("\"/>");
        }
        for curve in self.curves.iter().filter(|curve| curve.is_filled) {
            self.write_paths(page, curve, "area");
        }
        for curve in &self.curves {
            self.write_paths(page, curve, "curve");
        }
        for curve in &self.curves {
            self.write_told(page, curve);
        }
        page.raw("</svg>");
    }

    /// Writes the lines of a curve, or the areas under them.
    fn write_paths(&self, page: &mut Html, curve: &Curve, class: &'static str) {
        for line in curve.lines.iter().filter(|line| !line.is_empty()) {
            page.raw("<path class=\"")
                .raw(class)
                .raw(" c")
                .text(curve.colour % COLOURS)
                .raw("\" d=\"");
            for (number, point) in line.iter().enumerate() {
                let letter = if number == 0 { 'M' } else { 'L' };
                let (x, y) = self.place(point);
                page.text(format_args!("{letter}{x:.1} {y:.1}"));
            }
            if let ("area", [first, .., last]) = (class, line.as_slice()) {
                let (first, last) = (first.x * SIDE, last.x * SIDE);
                page.text(format_args!("L{last:.1} 1000L{first:.1} 1000z"));
            }
            // A place alone is a line of no length, whose round ends are drawn.
            page.raw(if line.len() == 1 { "h0\"/>" } else { "\"/>" });
        }
    }

    /// Writes the texts under the pointer: a wide invisible dot for each place.
    fn write_told(&self, page: &mut Html, curve: &Curve) {
        let points: Vec<&Point> = curve.lines.iter().flatten().collect();
        let stride = points.len().div_ceil(SHOWN_MAX).max(1);
        for point in points.into_iter().step_by(stride) {
            let (x, y) = self.place(point);
            page.raw("<path class=\"told c")
                .text(curve.colour % COLOURS);
            page.raw("\" d=\"").text(format_args!("M{x:.1} {y:.1}h0"));
            page.raw("\"><title>")
                .text(&point.about)
                .raw("</title></path>");
        }
    }

    /// Writes the names of places on both axes.
    fn write_words(&self, page: &mut Html) {
        for tick in self.scale.ticks() {
            let bottom = tick.at * 100.0;
            page.raw("<span class=\"y\" style=\"bottom:")
                .text(format_args!("{bottom:.2}%"));
            page.raw("\">").text(&tick.label).raw("</span>");
        }
        let slots = self.slots.iter().filter(|_| self.ticks.is_empty());
        let named = slots.map(|slot| ((slot.from + slot.to) / 2.0, &slot.label));
        for (at, label) in self
            .ticks
            .iter()
            .map(|tick| (tick.at, &tick.label))
            .chain(named)
        {
            let left = at * 100.0;
            page.raw("<span class=\"x\" style=\"left:")
                .text(format_args!("{left:.2}%"));
            page.raw("\">").text(label).raw("</span>");
        }
    }

    fn place(&self, point: &Point) -> (f64, f64) {
        (point.x * SIDE, height(self.scale.place(point.value)))
    }
}

/// Returns the vertical place in SVG, which counts from the top.
fn height(place: f64) -> f64 {
    (1.0 - place) * SIDE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: &[f64]) -> Chart {
        let point = |(x, value): (usize, &f64)| Point {
            x: x as f64 / 10.0,
            value: *value,
            about: format!("<{value}>"),
        };
        Chart {
            id: "test",
            title: "Test",
            about: String::new(),
            scale: Scale::linear(values),
            ticks: Vec::new(),
            slots: Vec::new(),
            curves: vec![Curve {
                label: "a & b".to_owned(),
                colour: 9,
                is_filled: false,
                lines: vec![values.iter().enumerate().map(point).collect()],
                absent: "",
            }],
        }
    }

    fn written(values: &[f64]) -> String {
        let mut page = Html::default();
        chart(values).write(&mut page);
        page.finish()
    }

    #[test]
    fn a_curve_goes_through_its_values() {
        let page = written(&[0.0, 10.0, 20.0]);
        let curve = "<path class=\"curve c1\" d=\"M0.0 1000.0L100.0 500.0L200.0 0.0\"/>";
        assert!(page.contains(curve), "{page}");
        assert!(page.contains("a &amp; b") && page.contains("<title>&lt;10&gt;</title>"));
    }

    #[test]
    fn a_place_alone_is_drawn_too() {
        assert!(written(&[20.0]).contains("d=\"M0.0 0.0h0\"/>"));
    }
}
