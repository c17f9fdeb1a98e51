//! The addresses of the cluster that are taken: an IPAddress object for each, which can be created once.

use std::net::IpAddr;

use ringwatch::clock::Clock;
use ringwatch::codec;
use ringwatch::meta::ResourceVersion;
use ringwatch::storage::{GetOptions, ListOptions};
use ringwatch_apimachinery::Error;
use ringwatch_registry::{CreateOptions, DeleteOptions, RequestContext, Store};
use serde_json::{Value, json};

use crate::core::service::Owner;
use crate::service_ranges::{Family, Range};
use crate::validation::values;

/// Says of which addresses this is the keeper, as in kube-apiserver.
const MANAGED_BY: (&str, &str) = ("ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io");
const FAMILY: &str = "ipaddress.kubernetes.io/ip-family";

/// The reason why an address cannot be allocated.
#[derive(Debug, thiserror::Error)]
pub(super) enum AddressRefusal {
    #[error("provided IP is already allocated")]
    Taken,
    #[error("the provided network does not match the current range")]
    OtherNetwork,
    #[error(
        "the provided IP ({address}) is not in the valid range. The range of valid IPs is {range}"
    )]
    NotInRange { address: IpAddr, range: Range },
    #[error("range is full")]
    Full,
    #[error(transparent)]
    Store(#[from] Error),
}

/// An address that is taken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AllocatedAddress {
    pub(super) address: IpAddr,
    /// The uid of the IPAddress.
    pub(super) uid: String,
    pub(super) owner: Owner,
}

/// The addresses of the cluster.
#[derive(Debug)]
pub(super) struct Addresses {
    objects: Store,
    ranges: Store,
    clock: Clock,
}

impl Addresses {
    pub(super) fn new(objects: Store, ranges: Store, clock: Clock) -> Self {
        Self {
            objects,
            ranges,
            clock,
        }
    }

    /// Takes the requested address, or any of a family if it is empty.
    pub(super) async fn take(
        &self,
        requested: &str,
        family: Family,
        owner: &Owner,
        dry_run: bool,
    ) -> Result<IpAddr, AddressRefusal> {
        let mut ranges = self.ranges().await?;
        ranges.retain(|range| range.family() == family);
        if requested.is_empty() {
            return if dry_run {
                ranges
                    .first()
                    .map(Range::network)
                    .ok_or(AddressRefusal::Full)
            } else {
                self.take_any(&ranges, owner).await
            };
        }
        let address = values::address(requested).ok_or(AddressRefusal::OtherNetwork)?;
        if !ranges.iter().any(|range| range.contains(address)) {
            // A dry run of kube-apiserver asks one range alone, and names it.
            let asked = ranges.first().filter(|_| dry_run);
            return Err(match asked {
                Some(&range) => AddressRefusal::NotInRange { address, range },
                None => AddressRefusal::OtherNetwork,
            });
        }
        if !dry_run && !self.note(address, owner).await? {
            return Err(AddressRefusal::Taken);
        }
        Ok(address)
    }

    async fn take_any(&self, ranges: &[Range], owner: &Owner) -> Result<IpAddr, AddressRefusal> {
        for address in ranges.iter().flat_map(Range::candidates) {
            if !self.seems_taken(address).await? && self.note(address, owner).await? {
                return Ok(address);
            }
        }
        Err(AddressRefusal::Full)
    }

    /// Returns true if the cache has the IPAddress. Only an attempt to create it is certain.
    async fn seems_taken(&self, address: IpAddr) -> Result<bool, Error> {
        let options = GetOptions {
            resource_version: Some(ResourceVersion(0)),
        };
        match self.objects.get("", &address.to_string(), options).await {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Notes that an address is taken; false if it is already.
    pub(super) async fn note(&self, address: IpAddr, owner: &Owner) -> Result<bool, Error> {
        let (label, keeper) = MANAGED_BY;
        let object = json!({"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
            "metadata": {"name": address.to_string(), "labels": {FAMILY: Family::of(address).name(), label: keeper}},
            "spec": {"parentRef": {"resource": "services",
                "namespace": owner.namespace, "name": owner.name}}});
        let options = CreateOptions::default();
        let created = self
            .objects
            .create(&self.context(), "", object, &options)
            .await;
        match created {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives back an address, if it is this owner's.
    pub(super) async fn give_back(&self, address: IpAddr, owner: &Owner) -> Result<(), Error> {
        let name = address.to_string();
        match self.objects.get("", &name, GetOptions::default()).await {
            Ok(object) => match taken(&codec::tree(&object)?) {
                Some(taken) if taken.owner == *owner => self.forget(&taken).await,
                _ => Ok(()),
            },
            Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes the note about an address, and no later one.
    pub(super) async fn forget(&self, taken: &AllocatedAddress) -> Result<(), Error> {
        let options = DeleteOptions {
            precondition_uid: Some(taken.uid.clone()),
            ..DeleteOptions::default()
        };
        let name = taken.address.to_string();
        match self
            .objects
            .delete(&self.context(), "", &name, options)
            .await
        {
            Ok(_) | Err(Error::NotFound { .. } | Error::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns all that are taken.
    pub(super) async fn all(&self) -> Result<Vec<AllocatedAddress>, Error> {
        let list = self.objects.list("", ListOptions::default()).await?;
        let trees = list.items.iter().map(|object| codec::tree(object));
        let taken = trees.filter_map(|tree| tree.map(|tree| taken(&tree)).transpose());
        Ok(taken.collect::<Result<_, _>>()?)
    }

    /// Returns the ranges out of which addresses are given now.
    async fn ranges(&self) -> Result<Vec<Range>, Error> {
        let list = self.ranges.list("", ListOptions::default()).await?;
        let mut ranges = Vec::new();
        for object in &list.items {
            let object = codec::tree(object)?;
            if is_ready(&object) {
                let all = object["spec"]["cidrs"].as_array().into_iter().flatten();
                ranges.extend(all.filter_map(|range| Range::parse(range.as_str()?)));
            }
        }
        Ok(ranges)
    }

    fn context(&self) -> RequestContext {
        RequestContext::of_server(&self.clock)
    }
}

/// Returns the address that an IPAddress records; `None` if another component manages it.
fn taken(object: &Value) -> Option<AllocatedAddress> {
    let metadata = &object["metadata"];
    let (label, keeper) = MANAGED_BY;
    if metadata["labels"][label] != keeper {
        return None;
    }
    let parent = &object["spec"]["parentRef"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(AllocatedAddress {
        address: metadata["name"].as_str()?.parse().ok()?,
        uid: text(&metadata["uid"]),
        owner: Owner {
            namespace: text(&parent["namespace"]),
            name: text(&parent["name"]),
        },
    })
}

/// Returns true if addresses are allocated from a ServiceCIDR. One without the condition `Ready` counts, since its
/// controller may not run.
fn is_ready(range: &Value) -> bool {
    let conditions = range["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let ready = conditions.into_iter().find(|it| it["type"] == "Ready");
    range["metadata"]["deletionTimestamp"].is_null()
        && ready.is_none_or(|ready| ready["status"] == "True")
}
