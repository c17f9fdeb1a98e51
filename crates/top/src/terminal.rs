//! Follows the documents of a server on the terminal until the user quits.

use std::pin::Pin;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ringwatch::clock::Clock;
use ringwatch_load::Remote;
use ringwatch_observe::status::{ServerState, WATCHERS_PATH};
use tokio::runtime::Runtime;

use crate::TopError;
use crate::documents::Documents;
use crate::screen::{KeyEffect, Screen, View};

/// Maximum time for which a key waits while nothing comes from the server.
const KEY_DELAY: Duration = Duration::from_millis(50);

/// Maximum time that a request for watchers may take, during which no key is read.
const DETAILS_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of keys that are read before the screen is drawn again.
const KEYS_MAX: usize = 32;

/// The reading of the next document, which goes on while keys are read.
type Reading = Pin<Box<dyn Future<Output = (Documents, Result<ServerState, TopError>)>>>;

/// Shows documents until the user quits. The terminal is as before then, also after an error.
///
/// # Errors
/// The terminal cannot be read or written.
pub(crate) fn follow(
    runtime: &Runtime,
    documents: Documents,
    mut details: Remote,
    clock: &Clock,
) -> Result<(), TopError> {
    let are_whole = documents.are_whole();
    let mut screen = Screen::new(details.address());
    let mut reading: Reading = Box::pin(documents.next());
    let mut terminal = ratatui::init();
    let followed = loop {
        if let Err(error) = terminal.draw(|frame| screen.draw(frame)) {
            break Err(error.into());
        }
        let next = runtime.block_on(clock.timeout(KEY_DELAY, &mut reading));
        let mut is_newer = false;
        if let Ok((documents, state)) = next {
            reading = Box::pin(documents.next());
            is_newer = state.is_ok();
            match state {
                Ok(state) => screen.set_state(state),
                Err(error) => screen.set_problem(error.to_string()),
            }
        }
        match keys(&mut screen) {
            Ok(KeyEffect::Quit) => break Ok(()),
            Ok(KeyEffect::Opened) => is_newer = true,
            Ok(KeyEffect::Shown) => {}
            Err(error) => break Err(error.into()),
        }
        if is_newer && are_whole {
            let asked = clock.timeout(DETAILS_TIMEOUT, fill_in(&mut screen, &mut details));
            if let Err(problem) = runtime
                .block_on(asked)
                .unwrap_or_else(|late| Err(late.to_string()))
            {
                screen.set_problem(problem);
            }
        }
    };
    ratatui::restore();
    followed
}

/// Handles the keys that were pressed.
fn keys(screen: &mut Screen) -> std::io::Result<KeyEffect> {
    let mut outcome = KeyEffect::Shown;
    for _ in 0..KEYS_MAX {
        if !event::poll(Duration::ZERO)? {
            break;
        }
        let Event::Key(key) = event::read()? else {
            continue;
        };
        if key.kind != KeyEventKind::Press {
            continue;
        }
        let interrupts = key.modifiers.contains(KeyModifiers::CONTROL);
        if interrupts && key.code == KeyCode::Char('c') {
            return Ok(KeyEffect::Quit);
        }
        match screen.press(key.code) {
            KeyEffect::Quit => return Ok(KeyEffect::Quit),
            KeyEffect::Opened => outcome = KeyEffect::Opened,
            KeyEffect::Shown => {}
        }
    }
    Ok(outcome)
}

/// Asks for what the screen shows besides the state.
async fn fill_in(screen: &mut Screen, details: &mut Remote) -> Result<(), String> {
    let path = match screen.view_mut() {
        View::Sections => return Ok(()),
        View::Type(name, _) => format!("{WATCHERS_PATH}?type={name}"),
        View::Watcher(id, _) => format!("{WATCHERS_PATH}/{id}"),
    };
    let json = details.get(&path).await;
    match screen.view_mut() {
        View::Sections => {}
        View::Type(_, list) => {
            let json = json.map_err(|error| error.to_string())?;
            let read = serde_json::from_slice(&json);
            *list = Some(read.map_err(|error| error.to_string())?);
        }
        // One that has ended is not known any more.
        View::Watcher(_, watcher) => {
            *watcher = json.ok().and_then(|it| serde_json::from_slice(&it).ok());
        }
    }
    Ok(())
}
