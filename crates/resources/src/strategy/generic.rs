//! The strategy of most built-in kinds, which is put together from switches, checks and defaults.
//!
//! On the object itself the status is the server's: reset on creation, kept on update. On a
//! subresource such as `status` everything but one member is kept. The generation counts changes
//! of what a kind declares as its desired state. All that the switches cannot express is the kind's [`KindHooks`].

use std::sync::Arc;

use ringwatch::codec::RequiredValue;
use ringwatch::meta::Object;
use ringwatch_apimachinery::generation::set_generation;
use ringwatch_apimachinery::path::{get, keep, keeping_empty_lists, remove, set};
use ringwatch_apimachinery::{FieldError, NameRule};
use ringwatch_registry::subresource::SubresourceMetadata;
use ringwatch_registry::subresource::SubresourceStrategy;
use ringwatch_registry::{DeleteOptions, GarbageCollection, Graceful, RequestContext, Strategy};
use serde_json::{Value, json};

use super::kind_hooks::KindHooks;
use super::stored::LacksDefaults;
use crate::defaults::{self, DefaultRule};
use crate::validation::{CheckOfChange, Warn, found, found_in_change, found_in_update};
use crate::validation::{Field, ObjectCheck};

/// A strategy with switches. With none of them on, the object is stored as it comes.
#[derive(Clone, Debug)]
pub(crate) struct Generic {
    defaults: &'static [DefaultRule],
    lacks: Option<LacksDefaults>,
    /// True if null and empty members have a meaning and stay.
    verbatim: bool,
    /// The dotted paths of the lists of which an empty one is not the same as none.
    told_if_empty: &'static [&'static str],
    /// True if empty lists at these paths become none once the field manager has been recorded.
    forgets_empty: bool,
    /// The dotted paths of the lists and maps of which an empty one is not the same as none to the checks of updates.
    judged_if_empty: &'static [&'static str],
    /// The status of a new object; `None` if the server does not reset and keep the status.
    status: Option<Value>,
    /// The dotted paths whose changes increment `metadata.generation`; empty if the kind has no generation.
    generation: &'static [&'static str],
    /// The dotted paths of the fields of features that are off.
    off: &'static [&'static str],
    /// Drops further fields of features that are off, given the old object or null.
    drop_off_fields: Option<fn(&mut Value, &Value)>,
    create_on_update: bool,
    unconditional_update: bool,
    name_rule: NameRule,
    /// True if names are checked by their rule when an object is updated too.
    has_names_on_update: bool,
    metadata_last: bool,
    garbage_collection: GarbageCollection,
    returns_deleted_object: bool,
    warning_on_default_deletion: Option<&'static str>,
    checks: Vec<ObjectCheck>,
    checks_at_last: Vec<ObjectCheck>,
    checks_on_create: Vec<ObjectCheck>,
    checks_on_update: Vec<CheckOfChange>,
    changes_first: bool,
    warn_of_new: Option<Warn>,
    warn: Option<Warn>,
    warns_on_update: bool,
    hooks: Arc<dyn KindHooks>,
    parts: Vec<(&'static str, Arc<dyn Strategy>)>,
}

impl Generic {
    pub(crate) fn new() -> Self {
        Self {
            defaults: &[],
            lacks: None,
            verbatim: false,
            status: None,
            generation: &[],
            off: &[],
            drop_off_fields: None,
            create_on_update: false,
            unconditional_update: true,
            name_rule: NameRule::DnsSubdomain,
            has_names_on_update: false,
            metadata_last: false,
            garbage_collection: GarbageCollection::DeleteDependents,
            returns_deleted_object: false,
            warning_on_default_deletion: None,
            checks: Vec::new(),
            checks_at_last: Vec::new(),
            checks_on_create: Vec::new(),
            checks_on_update: Vec::new(),
            changes_first: false,
            warn_of_new: None,
            warn: None,
            warns_on_update: false,
            told_if_empty: &[],
            forgets_empty: false,
            judged_if_empty: &[],
            hooks: Arc::new(()),
            parts: Vec::new(),
        }
    }

    /// Makes the strategy of a kind with a status, which begins as `{}`, and the subresource `status`.
    pub(crate) fn with_status() -> Self {
        let mut this = Self::new();
        this.status = Some(json!({}));
        this.status_metadata(SubresourceMetadata::Free)
    }

    /// Sets the status of new objects.
    pub(crate) fn initial_status(mut self, status: Value) -> Self {
        self.status = Some(status);
        self
    }

    /// Sets which metadata a write to the status subresource may change.
    pub(crate) fn status_metadata(self, metadata: SubresourceMetadata) -> Self {
        self.part("status", SubresourceStrategy::new("status", metadata))
    }

    /// Sets which metadata a write to the status subresource may change, and the validation of such a write.
    pub(crate) fn status_update(
        self,
        metadata: SubresourceMetadata,
        validate: fn(&Value, &Value) -> Vec<FieldError>,
    ) -> Self {
        let part = SubresourceStrategy::new("status", metadata);
        self.part("status", part.validate_update(validate))
    }

    /// Adds a subresource through which the object is written, or replaces the one of this name.
    pub(crate) fn part(mut self, name: &'static str, strategy: impl Strategy + 'static) -> Self {
        self.parts.retain(|(other, _)| *other != name);
        self.parts.push((name, Arc::new(strategy)));
        self
    }

    /// Sets the defaults of fields that clients may leave out.
    pub(crate) fn defaults(mut self, rules: &'static [DefaultRule]) -> Self {
        self.defaults = rules;
        self
    }

    /// Sets the test for objects in the store that are given defaults when they are read.
    pub(crate) fn defaults_on_read(mut self, lacks: LacksDefaults) -> Self {
        self.lacks = Some(lacks);
        self
    }

    #[cfg(test)]
    pub(crate) fn rules(&self) -> &'static [DefaultRule] {
        self.defaults
    }

    /// Keeps null and empty members as they come, since the kind holds data whose meaning the server does not know.
    pub(crate) fn verbatim(mut self) -> Self {
        self.verbatim = true;
        self
    }

    /// Sets the dotted paths of the lists of which an empty one is not the same as none.
    pub(crate) fn told_if_empty(mut self, paths: &'static [&'static str]) -> Self {
        self.told_if_empty = paths;
        self
    }

    /// Sets the dotted paths of the lists that are always written, of which an empty one has a field manager, though it
    /// is stored as none.
    pub(crate) fn managed_if_empty(mut self, paths: &'static [&'static str]) -> Self {
        self.forgets_empty = true;
        self.told_if_empty(paths)
    }

    /// Sets the dotted paths of the lists and maps of which an empty one is not the same as none to the checks of
    /// updates, and to nothing else.
    pub(crate) fn judged_if_empty(mut self, paths: &'static [&'static str]) -> Self {
        self.judged_if_empty = paths;
        self
    }

    fn forget_empty(&self, object: &mut Value) {
        for path in self.told_if_empty.iter().filter(|_| self.forgets_empty) {
            let list = get(object, path).and_then(Value::as_array);
            if list.is_some_and(Vec::is_empty) {
                drop(remove(object, path));
            }
        }
    }

    /// Counts changes of the members at these dotted paths in `metadata.generation`.
    pub(crate) fn generation(mut self, members: &'static [&'static str]) -> Self {
        self.generation = members;
        self
    }

    /// Drops the fields at these dotted paths, whose features are off, from what is written, unless the object has them
    /// already.
    pub(crate) fn off(mut self, paths: &'static [&'static str]) -> Self {
        self.off = paths;
        self
    }

    /// Drops fields of features that are off by a function of the new object, and of the old one or null.
    pub(crate) fn off_fields(mut self, drop: fn(&mut Value, &Value)) -> Self {
        self.drop_off_fields = Some(drop);
        self
    }

    fn drop_off(&self, object: &mut Value, old: &Value) {
        drop_unless_there(object, old, self.off);
        if let Some(drop_fields) = self.drop_off_fields {
            drop_fields(object, old);
        }
    }

    /// Lets PUT create an object that does not exist.
    pub(crate) fn create_on_update(mut self) -> Self {
        self.create_on_update = true;
        self
    }

    /// Requires the resource version in an update.
    pub(crate) fn conditional_update(mut self) -> Self {
        self.unconditional_update = false;
        self
    }

    pub(crate) fn name_rule(mut self, rule: NameRule) -> Self {
        self.name_rule = rule;
        self
    }

    /// Checks names by their rule when an object is updated too, as kube-apiserver does for some kinds. The name stays,
    /// but that which it was generated from need not.
    pub(crate) fn names_on_update(mut self) -> Self {
        self.has_names_on_update = true;
        self
    }

    /// Looks at the metadata of new objects only when nothing else is wrong with them.
    pub(crate) fn metadata_last(mut self) -> Self {
        self.metadata_last = true;
        self
    }

    pub(crate) fn garbage_collection(mut self, policy: GarbageCollection) -> Self {
        self.garbage_collection = policy;
        self
    }

    /// Sets the warning for deletions that do not say what becomes of the dependents.
    pub(crate) fn warn_on_default_deletion(mut self, warning: &'static str) -> Self {
        self.warning_on_default_deletion = Some(warning);
        self
    }

    pub(crate) fn returns_deleted_object(mut self) -> Self {
        self.returns_deleted_object = true;
        self
    }

    /// Adds a check of new and updated objects. An updated object may break later rules that the old one breaks.
    pub(crate) fn check(mut self, check: ObjectCheck) -> Self {
        self.checks.push(check);
        self
    }

    /// Adds a check of new and updated objects under a condition. Its errors come after those of the other checks.
    pub(crate) fn check_if(mut self, condition: bool, check: ObjectCheck) -> Self {
        if condition {
            self.checks_at_last.push(check);
        }
        self
    }

    /// Adds a check of new objects alone.
    pub(crate) fn check_on_create(mut self, check: ObjectCheck) -> Self {
        self.checks_on_create.push(check);
        self
    }

    /// Adds a check of an updated object against the old one.
    pub(crate) fn check_on_update(mut self, check: CheckOfChange) -> Self {
        self.checks_on_update.push(check);
        self
    }

    /// Tells what is wrong with a change before what is wrong with the object, as Kubernetes does for a few kinds.
    pub(crate) fn changes_first(mut self) -> Self {
        self.changes_first = true;
        self
    }

    /// Sets warnings about new objects alone, which come before all others.
    pub(crate) fn warn_of_new(mut self, warn: Warn) -> Self {
        self.warn_of_new = Some(warn);
        self
    }

    /// Sets the warnings about new objects.
    pub(crate) fn warn(mut self, warn: Warn) -> Self {
        self.warn = Some(warn);
        self
    }

    /// Sets the warnings about new and updated objects. For kinds with a generation, an update gets them only if the
    /// generation changes.
    pub(crate) fn warn_always(mut self, warn: Warn) -> Self {
        self.warns_on_update = true;
        self.warn(warn)
    }

    /// Sets the behaviour that the switches cannot express.
    pub(crate) fn hooks(mut self, hooks: impl KindHooks + 'static) -> Self {
        self.hooks = Arc::new(hooks);
        self
    }
}

impl Strategy for Generic {
    fn told_if_empty(&self) -> &'static [&'static str] {
        self.told_if_empty
    }

    fn judged_if_empty(&self) -> &'static [&'static str] {
        self.judged_if_empty
    }

    fn default(&self, object: &mut Value) {
        if !self.verbatim {
            keeping_empty_lists(self.told_if_empty, object, defaults::remove_empty);
        }
        self.hooks.default(object);
        defaults::apply(self.defaults, object);
    }

    fn lacks_defaults(&self, object: &Object) -> bool {
        self.lacks.is_some_and(|lacks| lacks(object))
    }

    fn wanted(&self) -> Vec<RequiredValue> {
        defaults::wanted(self.defaults)
    }

    fn forget_default_labels(&self, object: &mut Value) {
        self.hooks.forget_default_labels(object);
    }

    fn prepare_for_create(&self, context: &RequestContext, object: &mut Value) {
        if let Some(status) = &self.status {
            set(object, "status", status.clone());
        }
        if !self.generation.is_empty() {
            set(object, "metadata.generation", json!(1));
        }
        self.forget_empty(object);
        self.drop_off(object, &Value::Null);
        self.hooks.prepare_for_create(context, object);
    }

    fn is_costly(&self) -> bool {
        self.hooks.is_costly()
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let checks = self.checks.iter().chain(&self.checks_on_create);
        let checks = checks.chain(&self.checks_at_last);
        let mut errors: Vec<_> = checks.flat_map(|check| found(*check, object)).collect();
        errors.extend(self.hooks.validate(object));
        errors.extend(self.hooks.validate_create(object));
        errors
    }

    fn warnings_on_create(&self, object: &Value) -> Vec<String> {
        let mut warnings = Vec::new();
        for warn in [self.warn_of_new, self.warn].into_iter().flatten() {
            warn(&Field::root(object), &mut warnings);
        }
        warnings.extend(self.hooks.warnings(object, None));
        warnings
    }

    fn warnings_on_update(&self, object: &Value, old: &Value) -> Vec<String> {
        let path = "metadata.generation";
        let idle = !self.generation.is_empty() && get(object, path) == get(old, path);
        let mut warnings = Vec::new();
        if let Some(warn) = self.warn.filter(|_| !idle && self.warns_on_update) {
            warn(&Field::root(object), &mut warnings);
        }
        warnings.extend(self.hooks.warnings(object, Some(old)));
        warnings
    }

    fn canonicalize(&self, object: &mut Value) {
        defaults::apply_zeros(self.defaults, object);
    }

    fn name_rule(&self) -> NameRule {
        self.name_rule
    }

    fn name_rule_on_update(&self) -> NameRule {
        if self.has_names_on_update {
            self.name_rule
        } else {
            NameRule::PathSegment
        }
    }

    fn judges_metadata_last(&self) -> bool {
        self.metadata_last
    }

    fn allow_create_on_update(&self) -> bool {
        self.create_on_update
    }

    fn allow_unconditional_update(&self) -> bool {
        self.unconditional_update
    }

    fn prepare_for_update(&self, context: &RequestContext, object: &mut Value, old: &Value) {
        if self.status.is_some() {
            keep(object, old, "status");
        }
        self.forget_empty(object);
        self.drop_off(object, old);
        self.hooks.prepare_for_update(context, object, old);
        count_generation(object, old, self.generation);
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let checks = self.checks.iter();
        let errors = checks.flat_map(|check| found_in_update(*check, object, old));
        let mut errors: Vec<_> = errors.collect();
        let changes = self.checks_on_update.iter();
        let changes = changes.flat_map(|check| found_in_change(*check, object, old));
        let at = if self.changes_first { 0 } else { errors.len() };
        errors.splice(at..at, changes.collect::<Vec<_>>());
        let last = self.checks_at_last.iter();
        errors.extend(last.flat_map(|check| found(*check, object)));
        errors.extend(self.hooks.validate(object));
        errors.extend(self.hooks.validate_update(object, old));
        errors
    }

    fn check_graceful_delete(
        &self,
        _context: &RequestContext,
        object: &Value,
        options: &mut DeleteOptions,
    ) -> Graceful {
        self.hooks.check_graceful_delete(object, options)
    }

    fn default_garbage_collection(&self) -> GarbageCollection {
        self.garbage_collection
    }

    fn warning_on_default_deletion(&self) -> Option<&'static str> {
        self.warning_on_default_deletion
    }

    fn returns_deleted_object(&self) -> bool {
        self.returns_deleted_object
    }

    fn holds_deletion(&self, object: &Value) -> bool {
        self.hooks.holds_deletion(object)
    }

    fn prepare_for_deletion(&self, object: &mut Value) {
        self.hooks.prepare_for_deletion(object);
    }

    fn to_served(&self, object: Value) -> Value {
        self.hooks.to_served(object)
    }

    fn to_stored(&self, object: Value) -> Value {
        self.hooks.to_stored(object)
    }

    fn converts(&self) -> bool {
        self.hooks.converts()
    }

    fn subresource(&self, name: &str) -> Option<&dyn Strategy> {
        self.parts
            .iter()
            .find(|(part, _)| *part == name)
            .map(|(_, part)| &**part)
    }
}

/// Removes the members at dotted paths that the old object does not have.
pub(crate) fn drop_unless_there(object: &mut Value, old: &Value, paths: &[&str]) {
    for path in paths {
        if get(old, path).is_none_or(Value::is_null) {
            drop(remove(object, path));
        }
    }
}

/// Sets the generation: one more than the old one if one of the members changed, else the old one.
pub(crate) fn count_generation(object: &mut Value, old: &Value, members: &[&str]) {
    if members.is_empty() {
        return;
    }
    let mut changes = members
        .iter()
        .map(|path| get(object, path) != get(old, path));
    let begins = changes.any(|changed| changed);
    set_generation(object, old, begins);
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::User;

    use super::*;

    fn context() -> RequestContext {
        RequestContext::new(User::default(), String::new(), Clock::real())
    }

    #[test]
    fn empty_lists_are_forgotten_after_they_are_defaulted() {
        let strategy = Generic::new().managed_if_empty(&["rules"]);
        let mut object = json!({"rules": [], "other": []});
        strategy.default(&mut object);
        assert_eq!(object, json!({"rules": []}));
        for update in [false, true] {
            let mut object = object.clone();
            if update {
                strategy.prepare_for_update(&context(), &mut object, &json!({}));
            } else {
                strategy.prepare_for_create(&context(), &mut object);
            }
            assert_eq!(object, json!({}));
        }
    }

    #[test]
    fn names_are_checked_by_their_rule_on_updates_of_some_kinds() {
        let plain = Generic::new().name_rule(NameRule::DnsLabel);
        assert_eq!(plain.name_rule_on_update(), NameRule::PathSegment);
        let strict = plain.names_on_update();
        assert_eq!(strict.name_rule_on_update(), NameRule::DnsLabel);
    }

    #[test]
    fn fields_of_features_that_are_off_stay_where_they_are() {
        let strategy = Generic::new().off(&["spec.new"]);
        let sent = json!({"spec": {"new": 1, "x": 1}});
        let mut object = sent.clone();
        strategy.prepare_for_create(&context(), &mut object);
        assert_eq!(object["spec"], json!({"x": 1}));
        for (old, kept) in [(json!({"spec": {}}), None), (sent.clone(), Some(1))] {
            let mut object = sent.clone();
            strategy.prepare_for_update(&context(), &mut object, &old);
            assert_eq!(object["spec"].get("new"), kept.map(Value::from).as_ref());
        }
    }

    #[test]
    fn the_status_is_the_servers_and_the_generation_counts() {
        let strategy = Generic::with_status()
            .initial_status(json!({"replicas": 0}))
            .generation(&["spec", "metadata.annotations"]);
        let mut object = json!({"metadata": {"name": "a"}, "spec": {"x": 1}, "status": {"y": 2}});
        strategy.prepare_for_create(&context(), &mut object);
        assert_eq!(object["status"], json!({"replicas": 0}));
        assert_eq!(object["metadata"]["generation"], 1);

        let old = object.clone();
        let mut labelled = old.clone();
        set(&mut labelled, "metadata.labels", json!({"a": "b"}));
        set(&mut labelled, "metadata.generation", json!(9));
        set(&mut labelled, "status", json!({"replicas": 9}));
        strategy.prepare_for_update(&context(), &mut labelled, &old);
        assert_eq!(labelled["metadata"]["generation"], 1);
        assert_eq!(labelled["status"], json!({"replicas": 0}));

        let mut changed = old.clone();
        set(&mut changed, "spec.x", json!(2));
        strategy.prepare_for_update(&context(), &mut changed, &old);
        assert_eq!(changed["metadata"]["generation"], 2);
    }

    #[test]
    fn verbatim_kinds_keep_what_is_empty() {
        let mut object = json!({"data": null, "list": []});
        Generic::new().verbatim().default(&mut object);
        assert_eq!(object, json!({"data": null, "list": []}));
        Generic::new().default(&mut object);
        assert_eq!(object, json!({}));
    }

    #[test]
    fn what_an_old_object_has_wrong_may_stay() {
        let check: ObjectCheck = |object, errors| {
            let member = object.at("spec.host");
            let error = member.forbidden("").by_later_rule("host");
            errors.extend(member.is_true().then_some(error));
        };
        let strategy = Generic::new().check(check);
        let (right, wrong) = (json!({}), json!({"spec": {"host": true}}));
        assert_eq!(strategy.validate(&right), []);
        assert_eq!(strategy.validate(&wrong).len(), 1);
        assert_eq!(strategy.validate_update(&wrong, &right).len(), 1);
        assert_eq!(strategy.validate_update(&wrong, &wrong), []);
    }
}
