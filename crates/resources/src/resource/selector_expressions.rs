//! Selectors of devices: expressions are compiled, typed and estimated when they are written.
//!
//! Follows staging/src/k8s.io/dynamic-resource-allocation/cel of Kubernetes 1.36, with the features that are on by
//! default.

use std::sync::{Arc, LazyLock};

use ringwatch_cel::{DeclaredType, Names, Object, SizedType, Type, check_program, compile_binding};

use crate::validation::field::{Errors, Field};

/// Maximum cost of a selector.
const COST_MAX: u64 = 1_000_000;
/// Maximum number of attributes, and of capacities, of a device.
const ENTRIES_MAX: u64 = 32;
/// Maximum number of bytes of the name of a driver.
const DRIVER_BYTES_MAX: u64 = 63;
/// Maximum number of bytes of an attribute that is a string or a version.
const ATTRIBUTE_BYTES_MAX: u64 = 64;

/// The variable of selectors: the device that is looked at.
static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let quantity = plain(Type::Opaque("kubernetes.Quantity".into()), u64::MAX);
    let fields = [
        ("driver", plain(Type::String, DRIVER_BYTES_MAX)),
        ("allowMultipleAllocations", plain(Type::Bool, 1)),
        ("attributes", by_name(plain(Type::Dyn, ATTRIBUTE_BYTES_MAX))),
        ("capacity", by_name(quantity)),
    ];
    let fields = fields.map(|(name, declared)| (name.to_owned(), declared));
    let device = Object {
        name: "kubernetes.DRADevice".to_owned(),
        fields: fields.into_iter().collect(),
        others: None,
    };
    let mut names = Names::default();
    names.add("device", Type::Object(device.into()));
    names
});

fn plain(of: Type, max: u64) -> DeclaredType {
    DeclaredType {
        max,
        ..DeclaredType::unsized_(of)
    }
}

/// Returns the declaration of values by their domains and names.
fn by_name(value: DeclaredType) -> DeclaredType {
    let map = |values: DeclaredType| DeclaredType {
        form: SizedType::Map(Arc::new(values)),
        max: ENTRIES_MAX,
        min_bytes: 2,
    };
    map(map(value))
}

/// Checks the expression of a selector. Follows `validateCELSelector`.
pub(super) fn check(expression: &Field<'_, '_>, errors: &mut Errors) {
    let source = expression.text();
    let checked = compile_binding(source);
    let checked = checked.and_then(|program| check_program(source, &program, &NAMES));
    let why = match checked {
        Ok(checked) if matches!(checked.gives, Type::Bool | Type::Dyn) => {
            if checked.cost > COST_MAX {
                errors.push(expression.forbidden("too complex, exceeds cost limit"));
            }
            return;
        }
        Ok(checked) => format!(
            "must evaluate to bool or the unknown type, not {}",
            checked.gives.full_name()
        ),
        Err(error) => error.detail(),
    };
    errors.push(expression.invalid(why));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::resource::class_validation::class;
    use crate::validation::{found, messages};

    #[test]
    fn selectors_are_compiled() {
        let all = "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, \
            device.attributes.all(d, a == b && c == d))))";
        for (expression, why) in [
            (
                "device.driver == 'd' && device.allowMultipleAllocations",
                "",
            ),
            ("device.attributes['d'].model.startsWith('a')", ""),
            ("device.attributes['d'].healthy", ""),
            (
                "cel.bind(d, device.attributes['d'], d.version.isGreaterThan(semver('1.0.0')))",
                "",
            ),
            (
                "device.capacity['d'].memory.compareTo(quantity('1Gi')) >= 0",
                "",
            ),
            (
                "device.driver",
                r#"Invalid value: "device.driver": must evaluate to bool or the unknown type, not string"#,
            ),
            (
                "null",
                r#"Invalid value: "null": must evaluate to bool or the unknown type, not null_type"#,
            ),
            (
                "device.capacity['d'].memory == 1",
                "Invalid value: \"device.capacity['d'].memory == 1\": compilation failed: ERROR: <input>:1:29: \
                 found no matching overload for '_==_' applied to '(kubernetes.Quantity, int)'\n \
                 | device.capacity['d'].memory == 1\n | ............................^",
            ),
            (
                "device.x == 1",
                "Invalid value: \"device.x == 1\": compilation failed: ERROR: <input>:1:7: undefined field 'x'\n \
                 | device.x == 1\n | ......^",
            ),
            (all, "Forbidden: too complex, exceeds cost limit"),
        ] {
            let object = json!({"spec": {"selectors": [{"cel": {"expression": expression}}]}});
            let wrong = match why {
                "" => Vec::new(),
                why => vec![format!("spec.selectors[0].cel.expression: {why}")],
            };
            assert_eq!(messages(&found(class, &object)), wrong, "{expression}");
        }
    }
}
