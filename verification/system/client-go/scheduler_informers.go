package main

import (
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// closed lets a wait look once.
var closed = func() chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}()

// schedulersInformers are what the plugins of the scheduler ask for besides pods and nodes.
func schedulersInformers(factory informers.SharedInformerFactory) []cache.SharedIndexInformer {
	core, apps, storage, devices := factory.Core().V1(), factory.Apps().V1(), factory.Storage().V1(), factory.Resource().V1()
	return []cache.SharedIndexInformer{
		core.Namespaces().Informer(), core.Services().Informer(), core.ReplicationControllers().Informer(),
		core.PersistentVolumes().Informer(), core.PersistentVolumeClaims().Informer(),
		apps.ReplicaSets().Informer(), apps.StatefulSets().Informer(),
		factory.Policy().V1().PodDisruptionBudgets().Informer(),
		storage.StorageClasses().Informer(), storage.CSINodes().Informer(), storage.CSIDrivers().Informer(),
		storage.CSIStorageCapacities().Informer(), storage.VolumeAttachments().Informer(),
		devices.ResourceClaims().Informer(), devices.ResourceSlices().Informer(), devices.DeviceClasses().Informer(),
	}
}
