//! Decides whether a deletion is graceful: kube-apiserver's BeforeDelete.

use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::accessor::{
    bump_generation, format_time, integer, is_terminating, later, set, text, time,
};
use serde_json::Value;

use super::Store;
use crate::{DeleteOptions, Graceful, RequestContext};

/// The outcome of BeforeDelete for the grace period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grace {
    /// The object is deleted at once.
    None,
    /// The object is deleted after the grace period in the options; the object is marked accordingly.
    Begun,
    /// The object is already being deleted, with a grace period no longer than the requested one.
    Pending,
}

impl Store {
    /// Checks the preconditions and decides about the grace period; marks the object if one
    /// begins or becomes shorter.
    ///
    /// # Errors
    /// [`Error::Conflict`] when a precondition does not hold.
    pub(super) fn before_delete(
        &self,
        context: &RequestContext,
        object: &mut Value,
        options: &mut DeleteOptions,
    ) -> Result<Grace, Error> {
        self.check_delete_preconditions(object, options)?;
        options.grace_period_seconds = options.grace_period_seconds.map(at_least_a_second);
        let period = integer(object, "deletionGracePeriodSeconds").map(at_least_a_second);
        if is_terminating(object) {
            let Some(period) = period.filter(|period| *period != 0) else {
                return Ok(Grace::None);
            };
            return Ok(shorten(object, period, options));
        }
        let strategy = self.strategy();
        if strategy.check_graceful_delete(context, object, options) == Graceful::No {
            return Ok(Grace::None);
        }
        let period = options.grace_period_seconds.unwrap_or(0);
        let end = later(context.clock.wall(), period);
        set(object, "deletionTimestamp", format_time(end));
        set(object, "deletionGracePeriodSeconds", period);
        bump_generation(object);
        Ok(Grace::Begun)
    }

    fn check_delete_preconditions(
        &self,
        object: &Value,
        options: &DeleteOptions,
    ) -> Result<(), Error> {
        // Kubernetes names the kind where the resource should be.
        let conflict = |message: String| Error::Conflict {
            resource: self.resource.qualified_kind(),
            name: text(object, "name").to_owned(),
            message,
        };
        let found = text(object, "uid");
        if let Some(wanted) = options.precondition_uid.as_deref()
            && wanted != found
        {
            return Err(conflict(format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({found}). The object might have been deleted and then recreated"
            )));
        }
        let found = text(object, "resourceVersion");
        if let Some(wanted) = options.precondition_resource_version.as_deref()
            && wanted != found
        {
            return Err(conflict(format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({found}). The object might have been modified"
            )));
        }
        Ok(())
    }
}

/// Shortens the grace period of a deletion that has begun. A longer one changes nothing.
fn shorten(object: &mut Value, period: i64, options: &mut DeleteOptions) -> Grace {
    let Some(wanted) = options.grace_period_seconds else {
        options.grace_period_seconds = Some(period);
        return Grace::Pending;
    };
    if wanted >= period {
        return Grace::Pending;
    }
    if let Some(end) = time(object, "deletionTimestamp") {
        let end = later(later(end, period.saturating_neg()), wanted);
        set(object, "deletionTimestamp", format_time(end));
    }
    set(object, "deletionGracePeriodSeconds", wanted);
    Grace::Begun
}

/// Negative periods count as one second.
fn at_least_a_second(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}
