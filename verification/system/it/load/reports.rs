//! The report page, opened in a browser: its curves must be seen where their values are.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::loading::{end, start};
use super::recorded::{failed_outcome, outcome, save};
use crate::support::browser::{Colour, Picture, Window};

/// Wide enough for two charts beside each other, high enough for all.
const WINDOW: Window = Window {
    width: 1_240,
    height: 2_200,
    is_dark: false,
};

/// The colours of a colour scheme.
struct Palette {
    /// Behind curves, and nowhere else.
    plot: Colour,
    curves: [Colour; 2],
}

const LIGHT: Palette = Palette {
    plot: [0xfb, 0xfc, 0xfe],
    curves: [[0x25, 0x63, 0xeb], [0xe8, 0x59, 0x0c]],
};
const DARK: Palette = Palette {
    plot: [0x13, 0x1a, 0x24],
    curves: [[0x6e, 0xa8, 0xfe], [0xff, 0x9f, 0x5a]],
};
const BAD: Colour = [0xb9, 0x1c, 0x1c];
const LOST: Colour = [0xfd, 0xe3, 0xe3];

/// The most by which each part of a colour may be off: edges of curves are smoothed.
const COLOUR_OFF_MAX: u8 = 40;

/// The most pixels by which a curve may be off its value.
const PLACE_OFF_MAX: f64 = 3.0;

/// Lines across a plot are thinner than this many pixels, and charts further apart.
const GAP_MAX: usize = 12;

/// Plots are wider and higher.
const PLOT_MIN: usize = 100;

/// The part of a picture in which curves are drawn, in pixels.
#[derive(Clone, Debug)]
struct Plot {
    x: Range<usize>,
    y: Range<usize>,
}

#[tokio::test]
async fn the_curves_of_a_report_are_where_their_values_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let saved = save(folder.path(), "outcome.json", &outcome(1.0));
    for (name, is_dark, palette) in [("light", false, LIGHT), ("dark", true, DARK)] {
        let page = page(&["show", text(&saved)], folder.path(), 0).await;
        let window = Window { is_dark, ..WINDOW };
        let Some(picture) = look(&format!("report {name}"), &page, window).await else {
            return;
        };
        let plots = plots(&picture, palette.plot);
        assert_eq!(plots.len(), 6, "{plots:?}");
        let [blue, orange] = palette.curves;
        // Nines: 90 % lies at one of 3.7, 99.9 % at three.
        let percentiles = [(1.0 / 3.7, 4.0), (2.0 / 3.7, 10.0), (3.0 / 3.7, 16.0)];
        goes_through(&picture, &plots[0], orange, 20.0, &percentiles);
        // The first run ends in the middle, where its high latency has doubled.
        goes_through(&picture, &plots[1], blue, 20.0, &[(0.1, 5.0), (0.9, 5.0)]);
        let rising = [(5.5, 13.0), (15.5, 18.0), (25.5, 13.0), (35.5, 18.0)];
        let rising = rising.map(|(at, ms)| (at / 40.0, ms));
        goes_through(&picture, &plots[1], orange, 20.0, &rising);
        goes_through(&picture, &plots[2], blue, 80_000.0, &[(0.25, 70_000.0)]);
        goes_through(&picture, &plots[3], blue, 80.0, &[(0.75, 70.0)]);
        goes_through(&picture, &plots[4], blue, 0.8, &[(0.3, 0.75)]);
        goes_through(&picture, &plots[4], orange, 0.8, &[(0.3, 0.25)]);
        goes_through(&picture, &plots[5], blue, 150.0, &[(10.5 / 40.0, 111.0)]);
    }
}

#[tokio::test]
async fn two_outcomes_share_their_charts() {
    let folder = tempfile::tempdir().expect("a folder");
    let left = save(folder.path(), "fast.json", &outcome(1.0));
    let right = save(folder.path(), "slow.json", &outcome(1.8));
    let page = page(&["compare", text(&left), text(&right)], folder.path(), 0).await;
    let Some(picture) = look("report of two outcomes", &page, WINDOW).await else {
        return;
    };
    let plots = plots(&picture, LIGHT.plot);
    assert_eq!(plots.len(), 7, "{plots:?}");
    for (curve, slower) in LIGHT.curves.into_iter().zip([1.0, 1.8]) {
        let at_99 = (2.0 / 3.7, 10.0 * slower);
        goes_through(&picture, &plots[0], curve, 40.0, &[at_99]);
        goes_through(&picture, &plots[1], curve, 10.0, &[(0.3, 5.0 * slower)]);
        goes_through(
            &picture,
            &plots[2],
            curve,
            40.0,
            &[(15.5 / 40.0, 18.0 * slower)],
        );
        goes_through(&picture, &plots[5], curve, 1.5, &[(0.3, 0.75 * slower)]);
    }
}

#[tokio::test]
async fn a_failure_is_seen_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let saved = save(folder.path(), "failed.json", &failed_outcome());
    let page = page(&["show", text(&saved)], folder.path(), 1).await;
    let Some(picture) = look("report of a failure", &page, WINDOW).await else {
        return;
    };
    let above = 0..400;
    let red = count(&picture, 0..picture.width, above, |it| it == BAD);
    assert!(red > 60_000, "{red} red pixels are not big");
    // The second run failed: its half of each chart over time has another ground.
    let Plot { x, y } = plots(&picture, LIGHT.plot)[1].clone();
    let is_lost = |pixel| pixel == LOST;
    let first = count(&picture, x.clone(), y.clone(), is_lost);
    let second = count(&picture, x.end..x.end + x.len(), y, is_lost);
    assert!(first == 0 && second > 20_000, "{first} and {second}");
}

/// Has the page of saved outcomes written, with this exit code.
async fn page(arguments: &[&str], folder: &Path, code: i32) -> PathBuf {
    let page = folder.join("report.html");
    let output = end(start(
        &[arguments, &["--report", text(&page)]].concat(),
        &[],
    ))
    .await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{errors}");
    page
}

async fn look(case: &str, page: &Path, window: Window) -> Option<Picture> {
    let name = case.replace(' ', "-");
    let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.png"));
    Picture::take(case, page, &picture, window).await
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// The plots of a page, as one reads.
fn plots(picture: &Picture, colour: Colour) -> Vec<Plot> {
    let (width, height) = (picture.width, picture.height);
    let rows = stretches(height, |y| (0..width).any(|x| picture.at(x, y) == colour));
    let of_row = |y: Range<usize>| {
        let columns = stretches(width, |x| y.clone().any(|y| picture.at(x, y) == colour));
        columns.into_iter().map(move |x| Plot { x, y: y.clone() })
    };
    rows.into_iter().flat_map(of_row).collect()
}

/// Returns the ranges of places where `is` holds, over gaps, as far as they are long enough.
fn stretches(length: usize, is: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for place in (0..length).filter(|place| is(*place)) {
        match found.last_mut() {
            Some(last) if place - last.end <= GAP_MAX => last.end = place + 1,
            _ => found.push(place..place + 1),
        }
    }
    found.retain(|it| it.len() >= PLOT_MIN);
    found
}

/// A curve must be long enough to be one, and have these values, given as parts of the width. `top`
/// is what the axis ends with.
fn goes_through(picture: &Picture, plot: &Plot, colour: Colour, top: f64, values: &[(f64, f64)]) {
    let Plot { x, y } = plot;
    let seen = count(picture, x.clone(), y.clone(), |it| is_near(it, colour));
    assert!(
        seen > x.len() * 9 / 10,
        "{seen} pixels of {colour:?} in {plot:?}"
    );
    for (part, value) in values {
        let column = x.start + (part * x.len() as f64) as usize;
        let pixels: Vec<f64> = y
            .clone()
            .filter(|y| is_near(picture.at(column, *y), colour))
            .map(|y| y as f64 + 0.5)
            .collect();
        assert!(!pixels.is_empty(), "no {colour:?} at {column} of {plot:?}");
        let middle = pixels.iter().sum::<f64>() / pixels.len() as f64;
        let expected = y.end as f64 - value / top * y.len() as f64;
        let off = (middle - expected).abs();
        assert!(
            off <= PLACE_OFF_MAX,
            "{value} at {column}: {middle}, not {expected}"
        );
    }
}

/// Returns the number of pixels in a part of the picture whose colour is one for which `is` holds.
fn count(
    picture: &Picture,
    x: Range<usize>,
    y: Range<usize>,
    is: impl Fn(Colour) -> bool,
) -> usize {
    let is = &is;
    let pixels = x.flat_map(|x| y.clone().map(move |y| picture.at(x, y)));
    pixels.filter(|pixel| is(*pixel)).count()
}

fn is_near(seen: Colour, colour: Colour) -> bool {
    let mut channels = seen.into_iter().zip(colour);
    channels.all(|(seen, wanted)| seen.abs_diff(wanted) <= COLOUR_OFF_MAX)
}
