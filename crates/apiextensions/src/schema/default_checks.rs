//! Checks the defaults of a schema against its rules when it is written, within a budget. Follows `ValidateDefaults`.

use std::ops::ControlFlow;

use ringwatch_cel::Meter;
use serde_json::Value;

use super::evaluate::evaluate;
use super::node::SchemaNode;
use super::outcome::SchemaErrors;
use super::path::Path;

/// Adds the rules that defaults of a schema break. Defaults below `additionalProperties` are not checked, and none is
/// after a rule that costs too much.
pub(super) fn check(
    node: &SchemaNode,
    path: &mut Path,
    meter: &mut Meter,
    found: &mut SchemaErrors,
) -> ControlFlow<()> {
    if !node.ruled {
        return ControlFlow::Continue(());
    }
    if let Some(default) = &node.default {
        let mark = path.member("default");
        let flow = check_default(node, default, path, meter, found);
        path.leave(mark);
        flow?;
    }
    if let Some(items) = node.items.as_deref() {
        let mark = path.member("items");
        let flow = check(items, path, meter, found);
        path.leave(mark);
        flow?;
    }
    for (name, property) in &node.properties {
        let mark = path.member("properties");
        let key = path.key(name);
        let flow = check(property, path, meter, found);
        path.leave(key);
        path.leave(mark);
        flow?;
    }
    ControlFlow::Continue(())
}

/// Checks that a default breaks no rule, neither as a value that stays nor as a new one.
fn check_default(
    node: &SchemaNode,
    default: &Value,
    path: &mut Path,
    meter: &mut Meter,
    found: &mut SchemaErrors,
) -> ControlFlow<()> {
    for old in [Some(default), None] {
        let (broken, flow) = evaluate(node, default, old, path, meter);
        let is_broken = !broken.is_valid();
        found.merge(broken);
        flow?;
        if is_broken {
            break;
        }
    }
    ControlFlow::Continue(())
}
