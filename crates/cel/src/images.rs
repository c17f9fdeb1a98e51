//! References of images: `image('registry/repository:tag').registry()`.

use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::Opaque;

use super::failure::{Failure, Outcome};
use super::meter::Meter;

/// The registry of images whose reference names none.
const DEFAULT_REGISTRY: &str = "index.docker.io";

/// An alias of that registry.
const DEFAULT_REGISTRY_ALIAS: &str = "docker.io";

/// The first part of the repository of images of that registry whose reference has one part.
const DEFAULT_NAMESPACE: &str = "library";

const DEFAULT_TAG: &str = "latest";

/// A parsed reference of an image: registry, repository, and tag or digest.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Image {
    registry: String,
    repository: String,
    version: Version,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Version {
    Tag(String),
    Digest(String),
}

impl Opaque for Image {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.Image"
    }
}

/// Returns the functions of images; `None` if it is none of them.
pub(super) fn call(
    meter: &mut Meter,
    name: &str,
    target: Option<&CelValue>,
    arguments: &[CelValue],
) -> Option<Outcome> {
    match (name, target, arguments) {
        ("image" | "isImage", None, [CelValue::String(text)]) => {
            Some(meter.charge_text(text.len() as u64).and_then(|()| {
                let image = Image::read(text);
                if name == "isImage" {
                    return Ok(CelValue::Bool(image.is_some()));
                }
                let why = || format!("could not parse reference: {text}");
                let image = image.ok_or_else(|| Failure::Other(why().into()))?;
                Ok(CelValue::Opaque(Arc::new(image)))
            }))
        }
        (_, Some(CelValue::Opaque(opaque)), []) => {
            let image = opaque.downcast_ref::<Image>()?;
            Some(meter.charge(1).and_then(|()| image.tell(name)))
        }
        _ => None,
    }
}

impl Image {
    fn tell(&self, name: &str) -> Outcome {
        let (tag, digest) = match &self.version {
            Version::Tag(tag) => (tag.as_str(), ""),
            Version::Digest(digest) => ("", digest.as_str()),
        };
        Ok(match name {
            "containsDigest" => CelValue::Bool(!digest.is_empty()),
            "registry" => CelValue::from(self.registry.as_str()),
            "repository" => CelValue::from(self.repository.as_str()),
            "identifier" => CelValue::from(format!("{tag}{digest}")),
            "tag" => CelValue::from(tag),
            "digest" => CelValue::from(digest),
            _ => return Err(Failure::NoOverload),
        })
    }

    /// Reads a reference: with a digest, whatever its tag, or with a tag, which may be absent.
    fn read(text: &str) -> Option<Self> {
        if let Some((base, digest)) = text.split_once('@') {
            let hex = digest.strip_prefix("sha256:")?;
            let is_hex = |letter: u8| matches!(letter, b'0'..=b'9' | b'a'..=b'f');
            if hex.len() != 64 || !hex.bytes().all(is_hex) {
                return None;
            }
            let base = split_tag(base).map_or(base, |(base, _)| base);
            return Self::from_parts(base, Version::Digest(digest.to_owned()));
        }
        let (base, tag) = split_tag(text)?;
        Self::from_parts(base, Version::Tag(tag.unwrap_or(DEFAULT_TAG).to_owned()))
    }

    fn from_parts(base: &str, version: Version) -> Option<Self> {
        let (registry, repository) = match base.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) => (first, rest),
            _ => ("", base),
        };
        let registry = match registry {
            "" | DEFAULT_REGISTRY_ALIAS => DEFAULT_REGISTRY,
            other if is_authority(other) => other,
            _ => return None,
        };
        let repository = if registry == DEFAULT_REGISTRY && !repository.contains('/') {
            is_repository(repository).then(|| format!("{DEFAULT_NAMESPACE}/{repository}"))?
        } else {
            repository.to_owned()
        };
        is_repository(&repository).then(|| Self {
            registry: registry.to_owned(),
            repository,
            version,
        })
    }
}

/// Returns a reference without its tag, and its tag if it has one; `None` if that is none.
fn split_tag(text: &str) -> Option<(&str, Option<&str>)> {
    match text.rsplit_once(':') {
        // What follows is behind the port of a registry.
        Some((_, rest)) if rest.contains('/') => Some((text, None)),
        Some((base, "")) => Some((base, None)),
        Some((base, tag)) => {
            let letter = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'.');
            (tag.len() <= 127 && tag.bytes().all(letter)).then_some((base, Some(tag)))
        }
        None => Some((text, None)),
    }
}

fn is_repository(text: &str) -> bool {
    let letter = |it: u8| matches!(it, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'/');
    (2..=255).contains(&text.len()) && text.bytes().all(letter)
}

/// Returns true if a string is a host, with or without a port, as in a URL.
fn is_authority(text: &str) -> bool {
    let letter = |it: u8| {
        it.is_ascii_alphanumeric() || !it.is_ascii() || b"-._~!$&'()*+,;=:[]<>\"".contains(&it)
    };
    let host_ends = if text.starts_with('[') {
        text.find(']').map(|at| at + 1)
    } else {
        Some(text.rfind(':').unwrap_or(text.len()))
    };
    let Some((_, port)) = host_ends.map(|at| text.split_at(at)) else {
        return false;
    };
    let is_port = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|it| it.bytes().all(|digit| digit.is_ascii_digit()));
    is_port && text.bytes().all(letter)
}
