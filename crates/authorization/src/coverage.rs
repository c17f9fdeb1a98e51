//! Compares sets of rules, to find the permissions that one grants beyond another.
//!
//! kube-apiserver breaks the wanted rules down to one verb, resource and name each, and looks for a held rule that
//! covers each part. A rule of a few hundred verbs, resources and names would have millions of such parts. So words
//! that occur in the same held rules are looked up together: mostly that is one lookup for all of them.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use super::Rule;
use super::rule::ALL;

/// Maximum number of missing parts that are returned.
const MISSING_PARTS_MAX: usize = 10_000;

/// Maximum number of comparisons with held rules, over all parts; then the rest counts as missing.
const LOOKS_MAX: usize = 2_000_000;

/// Permissions that a user lacks.
#[derive(Debug, Default)]
pub struct Missing {
    /// Rules of one verb and one resource or path each, at most 10,000.
    pub parts: Vec<Rule>,
    /// True if more than `parts` is missing, or might be.
    pub more: bool,
}

impl Missing {
    /// Returns true if nothing is missing.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.parts.is_empty() && !self.more
    }
}

/// Returns those of the wanted rules that none of the held ones covers, broken down to one verb and resource each. A
/// verb that only several rules together allow on something counts as covered, since each part is looked for by itself.
#[must_use]
pub fn missing_rules(held: &[Rule], wanted: &[Rule]) -> Missing {
    let held = GrantedRules::new(held);
    let mut search = Search {
        looks_left: LOOKS_MAX,
        found: Missing::default(),
    };
    for rule in wanted {
        search.resources(&held, rule);
        search.paths(&held, rule);
    }
    search.found
}

/// Words of a list that occur in the same held rules, with their indexes in the list.
type Alike<'r> = Vec<(usize, &'r str)>;

/// Groups the words that occur in the same held rules. Repeated words are left out.
fn grouped<'r, K: Eq + Hash>(words: &'r [String], alike: impl Fn(&'r str) -> K) -> Vec<Alike<'r>> {
    let mut seen = HashSet::new();
    let mut places: HashMap<K, usize> = HashMap::new();
    let mut groups: Vec<Alike<'r>> = Vec::new();
    for (index, word) in words.iter().enumerate() {
        if !seen.insert(word.as_str()) {
            continue;
        }
        let place = *places.entry(alike(word)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push((index, word));
    }
    groups
}

/// A held rule whose words are looked up.
struct HeldRule<'r> {
    rule: &'r Rule,
    verbs: HashSet<&'r str>,
    api_groups: HashSet<&'r str>,
    resources: HashSet<&'r str>,
    names: HashSet<&'r str>,
}

/// The number of the set of rules that have a word: words of the same rules share a number, words of no rule have none.
type RulesOf<'r> = HashMap<&'r str, usize>;

/// The rules that a user holds, with an index by which those that may cover a rule are found.
struct GrantedRules<'r> {
    rules: Vec<HeldRule<'r>>,
    by_verb: RulesOf<'r>,
    by_api_group: RulesOf<'r>,
    by_resource: RulesOf<'r>,
    by_name: RulesOf<'r>,
}

fn rules_of<'r>(rules: &'r [Rule], words: impl Fn(&'r Rule) -> &'r [String]) -> RulesOf<'r> {
    let mut having: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, rule) in rules.iter().enumerate() {
        for word in words(rule) {
            let rules = having.entry(word).or_default();
            if rules.last() != Some(&index) {
                rules.push(index);
            }
        }
    }
    let mut numbers = HashMap::new();
    let numbered = having.into_iter().map(|(word, rules)| {
        let next = numbers.len();
        (word, *numbers.entry(rules).or_insert(next))
    });
    numbered.collect()
}

impl<'r> GrantedRules<'r> {
    fn new(rules: &'r [Rule]) -> Self {
        let words = |list: &'r [String]| list.iter().map(String::as_str).collect();
        let held = rules.iter().map(|rule| HeldRule {
            rule,
            verbs: words(&rule.verbs),
            api_groups: words(&rule.api_groups),
            resources: words(&rule.resources),
            names: words(&rule.resource_names),
        });
        Self {
            rules: held.collect(),
            by_verb: rules_of(rules, |rule| &rule.verbs),
            by_api_group: rules_of(rules, |rule| &rule.api_groups),
            by_resource: rules_of(rules, |rule| &rule.resources),
            by_name: rules_of(rules, |rule| &rule.resource_names),
        }
    }
}

/// Looks for a word or `*` among a rule's words.
fn has(words: &HashSet<&str>, word: &str) -> bool {
    words.contains(ALL) || words.contains(word)
}

/// Returns the form that covers a subresource of every resource: `*/scale` for `deployments/scale`.
fn part_of_all(resource: &str) -> Option<String> {
    let (_, part) = resource.split_once('/')?;
    Some(format!("*/{part}"))
}

impl HeldRule<'_> {
    fn has_resource(&self, resource: &str) -> bool {
        has(&self.resources, resource)
            || part_of_all(resource).is_some_and(|part| self.resources.contains(part.as_str()))
    }

    fn has_name(&self, name: Option<&str>) -> bool {
        self.names.is_empty() || name.is_some_and(|name| self.names.contains(name))
    }
}

/// A search for what is missing.
struct Search {
    looks_left: usize,
    found: Missing,
}

impl Search {
    /// Returns the held rules that fit, of which each is looked at; none if there were too many looks already.
    fn fitting<'h, 'r>(
        &mut self,
        held: &[&'h HeldRule<'r>],
        fits: impl Fn(&HeldRule<'r>) -> bool,
    ) -> Vec<&'h HeldRule<'r>> {
        if self.may_look(held.len()) {
            held.iter().copied().filter(|rule| fits(rule)).collect()
        } else {
            Vec::new()
        }
    }

    /// Takes this many comparisons from the budget; returns false if it has fewer. A search among no rules counts as
    /// one.
    fn may_look(&mut self, times: usize) -> bool {
        let left = self.looks_left.checked_sub(times + 1);
        self.found.more |= left.is_none();
        self.looks_left = left.unwrap_or(0);
        left.is_some()
    }

    /// Returns true if the search is over.
    fn is_over(&self) -> bool {
        self.found.more
    }

    /// Looks for what a wanted rule allows on resources.
    fn resources<'r>(&mut self, held: &GrantedRules<'_>, wanted: &'r Rule) {
        let api_groups = grouped(&wanted.api_groups, |word| held.by_api_group.get(word));
        let resources = grouped(&wanted.resources, |word| {
            let part = part_of_all(word);
            let part = part.and_then(|part| held.by_resource.get(part.as_str()));
            (held.by_resource.get(word), part)
        });
        let verbs = grouped(&wanted.verbs, |word| held.by_verb.get(word));
        let mut names: Vec<Option<Alike<'r>>> = Vec::new();
        if wanted.resource_names.is_empty() {
            names.push(None);
        } else {
            let named = grouped(&wanted.resource_names, |word| held.by_name.get(word));
            names.extend(named.into_iter().map(Some));
        }
        let all: Vec<&HeldRule<'_>> = held.rules.iter().collect();
        let mut missing = Vec::new();
        for api_groups in &api_groups {
            let of_group = self.fitting(&all, |it| has(&it.api_groups, api_groups[0].1));
            for resources in &resources {
                let of_resource = self.fitting(&of_group, |it| it.has_resource(resources[0].1));
                for verbs in &verbs {
                    let of_verb = self.fitting(&of_resource, |it| has(&it.verbs, verbs[0].1));
                    for names in &names {
                        let name = names.as_ref().map(|names| names[0].1);
                        let of_name = self.fitting(&of_verb, |it| it.has_name(name));
                        if self.is_over() {
                            return self.report(missing);
                        }
                        if of_name.is_empty() {
                            missing.push((api_groups, resources, verbs, names));
                            self.found.more |= missing.len() > MISSING_PARTS_MAX;
                        }
                    }
                }
            }
        }
        self.report(missing);
    }

    /// Breaks missing permissions down to parts, in the order in which they were wanted.
    fn report(&mut self, missing: Vec<MissingOfResources<'_, '_>>) {
        let mut parts = Vec::new();
        'parts: for (api_groups, resources, verbs, names) in missing {
            let names: Vec<(usize, Option<&str>)> = match names {
                Some(names) => names.iter().map(|(at, name)| (*at, Some(*name))).collect(),
                None => vec![(0, None)],
            };
            for (group, api_group) in api_groups {
                for (resource, resource_text) in resources {
                    for (verb, verb_text) in verbs {
                        for (name, name_text) in &names {
                            if self.found.parts.len() + parts.len() >= MISSING_PARTS_MAX {
                                self.found.more = true;
                                break 'parts;
                            }
                            let texts = (*api_group, *resource_text, *verb_text, *name_text);
                            parts.push(([*group, *resource, *verb, *name], texts));
                        }
                    }
                }
            }
        }
        parts.sort_unstable();
        let parts = parts
            .into_iter()
            .map(|(_, (api_group, resource, verb, name))| Rule {
                verbs: vec![verb.to_owned()],
                api_groups: vec![api_group.to_owned()],
                resources: vec![resource.to_owned()],
                resource_names: name.map(str::to_owned).into_iter().collect(),
                ..Rule::default()
            });
        self.found.parts.extend(parts);
    }

    /// Looks for what a wanted rule allows on paths.
    fn paths(&mut self, held: &GrantedRules<'_>, wanted: &Rule) {
        let with_paths = held.rules.iter().filter(|it| it.has_name(None));
        let with_paths: Vec<&HeldRule<'_>> = with_paths
            .filter(|it| !it.rule.non_resource_urls.is_empty())
            .collect();
        let patterns = with_paths.iter().map(|it| it.rule.non_resource_urls.len());
        let patterns: usize = patterns.sum();
        let mut seen = HashSet::new();
        for path in &wanted.non_resource_urls {
            if !seen.insert(path) {
                continue;
            }
            if !self.may_look(patterns) {
                return;
            }
            let of_path = with_paths.iter().filter(|it| it.rule.has_path(path));
            let of_path: Vec<&HeldRule<'_>> = of_path.copied().collect();
            for verb in &wanted.verbs {
                let of_verb = self.fitting(&of_path, |it| has(&it.verbs, verb));
                self.found.more |= self.found.parts.len() >= MISSING_PARTS_MAX;
                if self.is_over() {
                    return;
                }
                if of_verb.is_empty() {
                    self.found.parts.push(Rule {
                        verbs: vec![verb.clone()],
                        non_resource_urls: vec![path.clone()],
                        ..Rule::default()
                    });
                }
            }
        }
    }
}

/// Words of API groups, resources and verbs, and names if a rule has some, which no held rule covers together.
type MissingOfResources<'g, 'r> = (
    &'g Alike<'r>,
    &'g Alike<'r>,
    &'g Alike<'r>,
    &'g Option<Alike<'r>>,
);

#[cfg(test)]
mod tests;
