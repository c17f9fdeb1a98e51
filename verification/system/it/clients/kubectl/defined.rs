//! kubectl with types that users have defined.

use super::steps::Says::{Exactly, Fails, Has};
use super::*;

const VALVES: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: valves.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: valves, kind: Valve, shortNames: [vlv], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
    selectableFields: &fields [{jsonPath: .spec.material}]
    additionalPrinterColumns: &columns
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Opened, type: date, jsonPath: .spec.opened}
    - {name: Material, type: string, jsonPath: .spec.material, priority: 1}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, description: How wide it opens.}
              opened: {type: string, format: date-time}
              material: {type: string, default: steel}
          status:
            type: object
            properties:
              size: {type: integer}
              conditions:
                type: array
                items: {type: object, properties: {type: {type: string}, status: {type: string}}}
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    subresources: {status: {}}
    selectableFields: *fields
    additionalPrinterColumns: *columns
    schema: *schema
"#;

const VALVE: &str = "
apiVersion: example.com/v1
kind: Valve
metadata: {name: main}
spec: {size: 3, opened: '2020-01-01T00:00:00Z'}
";

#[tokio::test]
async fn kubectl_works_with_what_is_defined() {
    let (server, _) = Server::ready(&[]).await;
    for kubectl in kubectls("kubectl and what is defined", &server) {
        fs::create_dir_all(&kubectl.folder).expect("a folder");
        let definition = kubectl.file("valves.yaml", VALVES);
        kubectl.ok(&["create", "-f", &definition]);
        kubectl.ok_soon(&["get", "valves"]);
        kubectl.ok_soon(&["explain", "valves.spec"]);
        kubectl.applies_and_scales_valves();
        kubectl.prints_valves();
        kubectl.ok(&["delete", "-f", &definition]);
    }
}

impl Kubectl {
    fn applies_and_scales_valves(&self) {
        let file = self.file("valve.yaml", VALVE);
        let wider = self.file("wider.yaml", &VALVE.replace("size: 3", "size: 4"));
        let apply = |file: &str, manager: &str| {
            format!("apply --server-side --field-manager={manager} -f {file}")
        };
        self.steps(&[
            (
                &apply(&file, "one"),
                Exactly("valve.example.com/main serverside-applied"),
            ),
            (
                &apply(&wider, "two"),
                Fails("Apply failed with 1 conflict: conflict with \"one\": .spec.size"),
            ),
            (
                "scale valve main --replicas=5",
                Exactly("valve.example.com/main scaled"),
            ),
            ("get vlv main -o jsonpath='{.spec.size}'", Exactly("5")),
            (
                "get valves --field-selector spec.material=steel -o name",
                Exactly("valve.example.com/main"),
            ),
            (
                "get valves --field-selector spec.material=brass -o name",
                Exactly(""),
            ),
            (
                "get valves --field-selector spec.size=5",
                Fails("field label not supported: spec.size"),
            ),
            (
                "get valves.v1beta1.example.com main -o name",
                Has("Warning: example.com/v1beta1 Valve is deprecated; use example.com/v1 Valve"),
            ),
            ("explain valves.spec --recursive", Has("material\t<string>")),
            ("get all -o name", Has("valve.example.com/main")),
        ]);
    }

    fn prints_valves(&self) {
        let ready = r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#;
        let status = ["--subresource=status", "--type=merge", "-p", ready];
        self.ok(&[&["patch", "valve", "main"][..], &status].concat());
        let rows = |arguments: &[&str]| {
            let printed = self.ok(&[&["get", "valves"], arguments].concat());
            let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
            let rows: Vec<Vec<String>> = printed.lines().map(words).collect();
            rows
        };
        let narrow = rows(&[]);
        assert_eq!(narrow[0], ["NAME", "SIZE", "OPENED", "READY"]);
        let [name, size, opened, ready] = narrow[1].as_slice() else {
            panic!("{narrow:?}");
        };
        assert_eq!([name, size, ready], ["main", "5", "True"]);
        // It was years ago, and is getting longer.
        assert!(opened.contains('y'), "{opened}");
        let wide = rows(&["-o", "wide"]);
        assert_eq!(wide[0], ["NAME", "SIZE", "OPENED", "MATERIAL", "READY"]);
        assert_eq!(wide[1][3], "steel");
    }
}
