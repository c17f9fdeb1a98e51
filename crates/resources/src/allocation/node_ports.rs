//! The ports of the nodes that are taken: one object, in the form and the place that kube-apiserver gives it, and
//! changed only by whoever has seen its latest content.

use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::codec;
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::{
    Interface, List, ListOptions, NextContent, Rejection, StorageError, TryUpdate, UpdateOptions,
    WatchStream,
};
use ringwatch_apimachinery::Error;
use ringwatch_registry::ListWatch;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::port_set::{PortRange, PortSet};

/// The prefix below which the object of allocated ports is stored, as in kube-apiserver.
pub const NODE_PORT_RANGES: &str = "ranges";
const KEY: &str = "/ranges/servicenodeports";

/// The port after which a dry run counts on where one would be allocated, if none is requested before. What it returns
/// is a dummy, as in kube-apiserver, and may lie in the range.
const PRETENDED: u16 = 32_768;

/// The reason why ports cannot be allocated.
#[derive(Debug, thiserror::Error)]
pub(super) enum PortRefusal {
    #[error("provided port is already allocated")]
    Taken {
        port: u16,
        /// The position of the port among those that are asked for.
        request: usize,
    },
    #[error("provided port is not in the valid range. The range of valid ports is {range}")]
    NotInRange { port: i64, range: PortRange },
    #[error("range is full")]
    Full,
    #[error("the store has node ports of the range {found:?}, and this server of {range}")]
    OtherRange { found: String, range: PortRange },
    #[error(transparent)]
    Store(StorageError),
}

/// The ports of the nodes.
#[derive(Debug)]
pub(super) struct NodePorts {
    storage: Arc<dyn Interface>,
    range: PortRange,
    /// The object that was stored last, as far as this server knows. Writers of this server wait for each other here,
    /// which saves them conflicts.
    last: Mutex<Option<Arc<Object>>>,
}

/// A change of the set of ports that is stored at a revision.
type PortChange<'a> = dyn FnMut(&mut PortSet, u64) -> Result<(), PortRefusal> + Send + 'a;

impl NodePorts {
    pub(super) fn new(storage: Arc<dyn Interface>, range: PortRange) -> Self {
        Self {
            storage,
            range,
            last: Mutex::new(None),
        }
    }

    /// Takes the requested ports, and any where none is requested: all of them or none.
    pub(super) async fn take(
        &self,
        requested: &[Option<u16>],
        dry_run: bool,
    ) -> Result<Vec<u16>, PortRefusal> {
        if requested.is_empty() {
            return Ok(Vec::new());
        }
        if dry_run {
            return self.pretend_to_take(requested).await;
        }
        let mut taken = Vec::new();
        self.change(&mut |ports, _| {
            taken.clear();
            // Requested ports go first, so that nothing else gets them.
            for (request, port) in requested.iter().enumerate() {
                if let Some(port) = port {
                    self.take_port(ports, *port, request)?;
                }
            }
            for port in requested {
                taken.push(match port {
                    Some(port) => *port,
                    None => self.range.take_any(ports).ok_or(PortRefusal::Full)?,
                });
            }
            Ok(())
        })
        .await?;
        Ok(taken)
    }

    /// Returns the ports that a dry run shows. As kube-apiserver's, it refuses those that are taken, and does not look
    /// at the range (`PortAllocationOperation`).
    async fn pretend_to_take(&self, requested: &[Option<u16>]) -> Result<Vec<u16>, PortRefusal> {
        let list = self.read().await.map_err(PortRefusal::Store)?;
        let mut ports = match list.items.first() {
            Some(object) => self.decode(object)?,
            None => PortSet::default(),
        };
        let mut highest = None;
        let shown = requested.iter().enumerate().map(|(request, port)| {
            let shown = match *port {
                Some(port) if !ports.take(port) => {
                    return Err(PortRefusal::Taken { port, request });
                }
                Some(port) => port,
                None => highest.unwrap_or(PRETENDED).saturating_add(1),
            };
            ports.take(shown);
            highest = highest.max(Some(shown));
            Ok(shown)
        });
        shown.collect()
    }

    /// Gives back ports. Who calls this must have had them.
    pub(super) async fn give_back(&self, given: &[u16]) -> Result<(), PortRefusal> {
        if given.is_empty() {
            return Ok(());
        }
        self.change(&mut |ports, _| {
            ports.0.retain(|port| !given.contains(port));
            Ok(())
        })
        .await
    }

    /// Gives ports back if the object is still of this revision. Returns true if it was.
    pub(super) async fn give_back_at(
        &self,
        given: &[u16],
        revision: u64,
    ) -> Result<bool, PortRefusal> {
        let mut current = false;
        self.change(&mut |ports, found| {
            current = found == revision;
            if current {
                ports.0.retain(|port| !given.contains(port));
            }
            Ok(())
        })
        .await?;
        Ok(current)
    }

    /// Notes that ports are taken, which they may be already. It makes the object if there is none.
    pub(super) async fn hold(&self, held: &[u16]) -> Result<(), PortRefusal> {
        let held = self.inside(held);
        self.change(&mut |ports, _| {
            ports.0.extend(&held);
            Ok(())
        })
        .await
    }

    /// Does as [`Self::hold`], and brings an object of another range into this server's: the range was changed.
    /// Releases all other ports if these are all that are used.
    pub(super) async fn rebuild(&self, held: &[u16], are_all: bool) -> Result<(), PortRefusal> {
        let held = self.inside(held);
        let mut change = |ports: &mut PortSet, _: u64| -> Result<(), PortRefusal> {
            if are_all {
                ports.0.clear();
            }
            ports.0.extend(&held);
            Ok(())
        };
        self.write(&mut change, OnOtherRange::Convert).await
    }

    /// Returns true if services may have this port.
    pub(super) fn may_have(&self, port: u16) -> bool {
        self.range.contains(port)
    }

    fn inside(&self, ports: &[u16]) -> Vec<u16> {
        let inside = ports.iter().copied();
        inside.filter(|port| self.may_have(*port)).collect()
    }

    fn take_port(&self, ports: &mut PortSet, port: u16, request: usize) -> Result<(), PortRefusal> {
        if !self.may_have(port) {
            return Err(self.not_in_range(port.into()));
        }
        let free = ports.take(port);
        free.then_some(())
            .ok_or(PortRefusal::Taken { port, request })
    }

    /// Returns the refusal of a number that is no port of the range.
    pub(super) fn not_in_range(&self, port: i64) -> PortRefusal {
        let range = self.range.clone();
        PortRefusal::NotInRange { port, range }
    }

    /// Returns the ports that an object says are taken.
    pub(super) fn decode(&self, object: &Object) -> Result<PortSet, PortRefusal> {
        self.ports_of(object, OnOtherRange::Refuse)
    }

    fn ports_of(&self, object: &Object, on_other: OnOtherRange) -> Result<PortSet, PortRefusal> {
        let object = codec::tree(object).map_err(|error| {
            PortRefusal::Store(StorageError::Internal {
                message: error.to_string(),
            })
        })?;
        let range = object["range"].as_str().unwrap_or_default();
        let data = object["data"].as_str().unwrap_or_default();
        if range == self.range.to_string()
            && let Some(ports) = self.range.decode(data)
        {
            return Ok(ports);
        }
        match on_other {
            OnOtherRange::Refuse => Err(PortRefusal::OtherRange {
                found: range.to_owned(),
                range: self.range.clone(),
            }),
            OnOtherRange::Convert => {
                let found = PortRange::parse(range).ok().and_then(|it| it.decode(data));
                let mut ports = found.unwrap_or_default();
                ports.0.retain(|port| self.range.contains(*port));
                Ok(ports)
            }
        }
    }

    /// Returns the object, if there is one, as of the latest revision.
    pub(super) async fn read(&self) -> Result<List, StorageError> {
        self.storage.get_list(KEY, ListOptions::default()).await
    }

    async fn change(&self, change: &mut PortChange<'_>) -> Result<(), PortRefusal> {
        self.write(change, OnOtherRange::Refuse).await
    }

    async fn write(
        &self,
        change: &mut PortChange<'_>,
        on_other: OnOtherRange,
    ) -> Result<(), PortRefusal> {
        let mut last = self.last.lock().await;
        let options = UpdateOptions {
            ignore_not_found: true,
            cached_existing: last.clone(),
            ..UpdateOptions::default()
        };
        let mut attempt = Attempt {
            ports: self,
            on_other,
            change,
        };
        let updated = self
            .storage
            .guaranteed_update(KEY, options, &mut attempt)
            .await;
        *last = updated.as_ref().ok().cloned();
        match updated {
            Ok(_) => Ok(()),
            Err(StorageError::Rejected(why)) => Err(match why.downcast() {
                Ok(refusal) => *refusal,
                Err(why) => PortRefusal::Store(StorageError::Rejected(why)),
            }),
            Err(error) => Err(PortRefusal::Store(error)),
        }
    }
}

/// The one object, if it is there. It cannot be listed while it cannot be decoded.
#[async_trait]
impl ListWatch for NodePorts {
    async fn list_all(&self) -> Result<List, Error> {
        self.read().await.map_err(Error::Storage)
    }

    async fn watch_from(&self, revision: u64) -> Result<WatchStream, Error> {
        let options = ListOptions {
            resource_version: Some(ResourceVersion(revision)),
            ..ListOptions::default()
        };
        let stream = self.storage.watch(KEY, options).await;
        stream.map_err(Error::Storage)
    }
}

/// A change of the allocated ports, as the storage tries it.
struct Attempt<'a, 'b> {
    ports: &'a NodePorts,
    on_other: OnOtherRange,
    change: &'a mut PortChange<'b>,
}

/// The way to treat an object that was written for another range.
#[derive(Clone, Copy)]
enum OnOtherRange {
    /// Change nothing.
    Refuse,
    /// Keep the ports that are in the server's range as well.
    Convert,
}

#[async_trait]
impl TryUpdate for Attempt<'_, '_> {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        let (node_ports, on_other) = (self.ports, self.on_other);
        let ports = existing.map(|it| node_ports.ports_of(it, on_other));
        let mut ports = ports.transpose()?.unwrap_or_default();
        let revision = existing.map_or(0, Object::revision);
        (self.change)(&mut ports, revision)?;
        let mut object = match existing {
            Some(existing) => codec::tree(existing)?,
            None => json!({"kind": "RangeAllocation", "apiVersion": "v1",
                "metadata": {"name": "servicenodeports"}}),
        };
        object["range"] = Value::from(node_ports.range.to_string());
        object["data"] = Value::from(node_ports.range.encode(&ports));
        Ok(NextContent { object, ttl: None })
    }
}
