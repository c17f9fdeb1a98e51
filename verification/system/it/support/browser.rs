//! A headless browser: pages as pictures.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use ringwatch_testing::eventually::DEADLINE;
use tokio::process::Command;

use super::tools::{find, skipped};

/// The names under which browsers of the kind that tests drive are found.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Flags of a browser without a window that asks nobody but the page's server.
pub(super) const QUIET: [&str; 8] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
    "--disable-component-update",
];

/// Returns the browser. `None` if there is none here, which is said.
pub(super) fn browser(case: &str) -> Option<PathBuf> {
    let found = PROGRAMS.into_iter().find_map(find);
    if found.is_none() {
        skipped(case, "no Chromium");
    }
    found
}

/// A colour: red, green and blue.
pub(crate) type Colour = [u8; 3];

/// The window in which a page is looked at, in pixels, and its colour scheme.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) is_dark: bool,
}

/// A screenshot of a page.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Row by row from the top, three bytes each.
    pixels: Vec<u8>,
}

impl Picture {
    /// Opens a page in a headless browser. `None` if there is none here, which is said. The picture
    /// stays where it is written, so that people can look at it too.
    pub(crate) async fn take(
        case: &str,
        page: &Path,
        picture: &Path,
        window: Window,
    ) -> Option<Self> {
        let browser = browser(case)?;
        let profile = tempfile::tempdir().expect("a folder");
        let size = format!("--window-size={},{}", window.width, window.height);
        let mut screenshot = Command::new(browser);
        screenshot
            .args(QUIET)
            .args([
                "--host-resolver-rules=MAP * ~NOTFOUND",
                "--force-color-profile=srgb",
                "--force-device-scale-factor=1",
                &size,
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("--screenshot={}", picture.display()))
            .args(
                window
                    .is_dark
                    .then_some("--blink-settings=preferredColorScheme=0"),
            )
            .arg(format!("file://{}", page.display()))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = tokio::time::timeout(DEADLINE, screenshot.output()).await;
        let output = output.expect("a picture in time").expect("a browser");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{case}: {said}");
        Some(Self::read(picture))
    }

    fn read(path: &Path) -> Self {
        let file = BufReader::new(File::open(path).expect("a picture"));
        let mut reader = png::Decoder::new(file).read_info().expect("a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut pixels).expect("a PNG");
        assert_eq!(
            (info.color_type, info.bit_depth),
            (png::ColorType::Rgb, png::BitDepth::Eight)
        );
        Self {
            width: info.width as usize,
            height: info.height as usize,
            pixels,
        }
    }

    pub(crate) fn at(&self, x: usize, y: usize) -> Colour {
        let from = (y * self.width + x) * 3;
        [0, 1, 2].map(|channel| self.pixels[from + channel])
    }
}
