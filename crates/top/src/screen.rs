//! The screen: the tables of a state, the watchers of a type, and one watcher. It knows keys and draws, and asks
//! nobody.

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table, TableState};
use ringwatch_observe::status::{ServerState, Watcher, WatcherList};

use crate::sections::{self, LeadsTo, Section};

/// Maximum number of findings above a table.
const SHOWN_MAX: usize = 3;

/// The number of rows by which the keys of pages move.
const PAGE_ROWS: usize = 10;

/// The least width of the last column, which takes what is left.
const LAST_COLUMN_MIN: u16 = 10;

/// The keys, as the last line says them.
const KEYS: &str = "q quit  tab next table  up/down move  enter open  esc back";

/// The content of the screen, and where the user is in it.
#[derive(Debug)]
pub(crate) struct Screen {
    address: String,
    state: Option<ServerState>,
    before: Option<ServerState>,
    view: View,
    /// The number of the table that is shown of a state.
    section: usize,
    /// The number of the selected row.
    row: usize,
    /// The reason why there is no newer state; `None` if there is nothing wrong.
    problem: Option<String>,
}

/// The part of the server that is shown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum View {
    /// A table of the state.
    Sections,
    /// The watchers of a type, once they are known.
    Type(String, Option<WatcherList>),
    /// A watcher, once it is known.
    Watcher(String, Option<Box<Watcher>>),
}

/// The outcome of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyEffect {
    /// The screen may have changed.
    Shown,
    /// The screen shows something that must be asked for.
    Opened,
    /// The user wants to end.
    Quit,
}

impl Screen {
    /// Creates the screen of a server of which nothing is known.
    pub(crate) fn new(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            state: None,
            before: None,
            view: View::Sections,
            section: 0,
            row: 0,
            problem: None,
        }
    }

    /// Shows a newer state.
    pub(crate) fn set_state(&mut self, state: ServerState) {
        self.before = self.state.replace(state);
        self.problem = None;
    }

    /// Shows why there is no newer state.
    pub(crate) fn set_problem(&mut self, problem: String) {
        self.problem = Some(problem);
    }

    /// Returns what is shown, to fill in what has been asked for.
    pub(crate) fn view_mut(&mut self) -> &mut View {
        &mut self.view
    }

    /// Handles a key.
    pub(crate) fn press(&mut self, key: KeyCode) -> KeyEffect {
        let rows = self.table().map_or(0, |it| it.rows.len());
        match key {
            KeyCode::Char('q') => return KeyEffect::Quit,
            KeyCode::Esc | KeyCode::Backspace if self.view == View::Sections => {
                return KeyEffect::Quit;
            }
            KeyCode::Esc | KeyCode::Backspace => self.show(View::Sections),
            KeyCode::Enter => return self.open(),
            KeyCode::Tab | KeyCode::Right => self.turn(1),
            KeyCode::BackTab | KeyCode::Left => self.turn(self.sections().len().saturating_sub(1)),
            KeyCode::Up | KeyCode::Char('k') => self.row = self.row.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.row += 1,
            KeyCode::PageUp => self.row = self.row.saturating_sub(PAGE_ROWS),
            KeyCode::PageDown => self.row += PAGE_ROWS,
            KeyCode::Home => self.row = 0,
            KeyCode::End => self.row = rows,
            _ => {}
        }
        self.row = self.row.min(rows.saturating_sub(1));
        KeyEffect::Shown
    }

    /// Draws the screen.
    pub(crate) fn draw(&self, frame: &mut Frame<'_>) {
        let lines = match &self.state {
            Some(state) => {
                let mut lines = sections::head(&self.address, state);
                let mut found = sections::stands_out(state);
                let hidden = found.split_off(found.len().min(SHOWN_MAX)).len();
                lines.extend(found);
                if hidden > 0 {
                    lines.push(format!("   and {hidden} more, which --once prints"));
                }
                lines
            }
            None => vec![format!("waiting for {}", self.address)],
        };
        let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        let [head, title, body, keys] = Layout::vertical([
            Constraint::Length(height),
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(paragraph(lines), head);
        frame.render_widget(Line::from(self.title()).style(Modifier::REVERSED), title);
        match (&self.view, self.table()) {
            (View::Watcher(_, Some(watcher)), _) => {
                frame.render_widget(paragraph(sections::story(watcher)), body);
            }
            (_, Some(section)) => self.draw_table(frame, body, &section),
            _ => {}
        }
        let last = self.problem.as_deref().unwrap_or(KEYS);
        frame.render_widget(Line::from(last), keys);
    }

    fn title(&self) -> String {
        match &self.view {
            View::Sections => {
                let sections = self.sections().into_iter().enumerate();
                let titles = sections.map(|(number, it)| match number == self.section {
                    true => format!("[{} {}]", it.title, it.rows.len()),
                    false => format!(" {} {} ", it.title, it.rows.len()),
                });
                titles.collect::<Vec<_>>().join(" ")
            }
            View::Type(name, list) => {
                let total = list.as_ref().map(|it| it.total);
                format!(
                    "watchers of {name}: {}",
                    ringwatch_observe::status::values::number(total)
                )
            }
            View::Watcher(id, None) => format!("watcher {id} has ended, or is not known yet"),
            View::Watcher(id, Some(_)) => format!("watcher {id}"),
        }
    }

    fn draw_table(&self, frame: &mut Frame<'_>, area: Rect, section: &Section) {
        let columns = section.columns.iter().enumerate();
        let width = |column: usize, name: &str| {
            let cells = section
                .rows
                .iter()
                .map(|row| row.cells[column].chars().count());
            let width = cells
                .chain([name.trim_end().len()])
                .max()
                .unwrap_or_default();
            u16::try_from(width).unwrap_or(u16::MAX)
        };
        let last = section.columns.len() - 1;
        let widths = columns.map(|(number, name)| match number == last {
            true => Constraint::Min(LAST_COLUMN_MIN),
            false => Constraint::Length(width(number, name)),
        });
        let cells = |row: &sections::TableRow| {
            let cells = row.cells.iter().zip(section.columns);
            Row::new(cells.map(|(cell, column)| match column.ends_with(' ') {
                true => Line::from(cell.clone()).right_aligned(),
                false => Line::from(cell.clone()),
            }))
        };
        let names = section
            .columns
            .iter()
            .map(|name| match name.ends_with(' ') {
                true => Line::from(name.trim_end()).right_aligned(),
                false => Line::from(*name),
            });
        let table = Table::new(section.rows.iter().map(cells), widths)
            .header(Row::new(names).style(Modifier::BOLD))
            .row_highlight_style(Style::from(Modifier::REVERSED));
        let mut selected = TableState::new().with_selected(Some(self.row));
        frame.render_stateful_widget(table, area, &mut selected);
    }

    fn sections(&self) -> Vec<Section> {
        let state = self.state.as_ref();
        state.map_or_else(Vec::new, |it| sections::sections(it, self.before.as_ref()))
    }

    /// Returns the table that is shown, if one is.
    fn table(&self) -> Option<Section> {
        match &self.view {
            View::Sections => self.sections().into_iter().nth(self.section),
            View::Type(_, list) => list.as_ref().map(|it| sections::watchers(&it.items)),
            View::Watcher(..) => None,
        }
    }

    /// Opens what the selected row leads to.
    fn open(&mut self) -> KeyEffect {
        let row = self
            .table()
            .and_then(|it| it.rows.into_iter().nth(self.row));
        match row.map(|it| it.leads_to) {
            Some(LeadsTo::Type(name)) => self.show(View::Type(name, None)),
            Some(LeadsTo::Watcher(id)) => self.show(View::Watcher(id, None)),
            Some(LeadsTo::Nothing) | None => return KeyEffect::Shown,
        }
        KeyEffect::Opened
    }

    fn turn(&mut self, by: usize) {
        let sections = self.sections().len().max(1);
        self.section = (self.section + by) % sections;
        self.show(View::Sections);
    }

    fn show(&mut self, view: View) {
        self.view = view;
        self.row = 0;
    }
}

fn paragraph(lines: Vec<String>) -> Paragraph<'static> {
    Paragraph::new(lines.into_iter().map(Line::from).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::metrics;

    fn state(changes: u32, seconds: u32) -> ServerState {
        let text = format!(
            "process_start_time_seconds 1000\n\
             apiserver_storage_objects{{resource=\"pods\"}} 12\n\
             apiserver_storage_objects{{resource=\"nodes\"}} 3\n\
             apiserver_watch_cache_events_received_total{{resource=\"pods\"}} {changes}\n\
             apiserver_flowcontrol_current_inqueue_requests{{priority_level=\"low\"}} 4\n"
        );
        let now = Timestamp::from_second(1000 + i64::from(seconds)).expect("a time");
        metrics::state(&text, now)
    }

    fn drawn(screen: &Screen) -> String {
        let mut terminal = Terminal::new(TestBackend::new(150, 12)).expect("a terminal");
        terminal.draw(|frame| screen.draw(frame)).expect("drawn");
        terminal.backend().to_string()
    }

    #[test]
    fn keys_lead_from_tables_to_a_type_and_back() {
        let mut screen = Screen::new("host:1");
        assert!(drawn(&screen).contains("waiting for host:1"));
        screen.set_state(state(10, 60));
        screen.set_state(state(30, 64));
        let shown = drawn(&screen);
        let row = shown.lines().find(|it| it.contains("pods")).expect("a row");
        assert!(row.contains("12") && row.contains("5.0"), "{shown}");
        assert_eq!(screen.press(KeyCode::Down), KeyEffect::Shown);
        assert_eq!(screen.press(KeyCode::Down), KeyEffect::Shown);
        assert_eq!(screen.press(KeyCode::Enter), KeyEffect::Opened);
        assert_eq!(*screen.view_mut(), View::Type("nodes".to_owned(), None));
        assert_eq!(screen.press(KeyCode::Esc), KeyEffect::Shown);
        screen.press(KeyCode::BackTab);
        let shown = drawn(&screen);
        assert!(
            shown.contains("[priority levels 1]") && shown.contains("low"),
            "{shown}"
        );
        assert_eq!(screen.press(KeyCode::Enter), KeyEffect::Shown);
        screen.set_problem("it is gone".to_owned());
        assert!(drawn(&screen).contains("it is gone"));
        assert_eq!(screen.press(KeyCode::Char('q')), KeyEffect::Quit);
    }
}
