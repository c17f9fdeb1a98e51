//! The conformance suite over the store and over the cache in front of it, each over memory (in JSON and in protobuf),
//! the embedded file and etcd.

mod subjects;

ringwatch_conformance::suite! {
    memory_store "the store in memory" super::subjects::memory_store;
    memory_cacher "the cache over memory" super::subjects::memory_cacher;
    memory_protobuf_store "the store of protobuf in memory" super::subjects::memory_protobuf_store;
    memory_protobuf_cacher "the cache over protobuf in memory" super::subjects::memory_protobuf_cacher;
    embedded_store "the store in a file" super::subjects::embedded_store;
    embedded_cacher "the cache over a file" super::subjects::embedded_cacher;
    etcd_store "the store in etcd" super::subjects::etcd_store;
    etcd_cacher "the cache over etcd" super::subjects::etcd_cacher;
}
