"""Volume sources of storage systems, most of them kept by Kubernetes for old manifests.

These are the fields of core/v1 in Kubernetes 1.34 (API reference), with the choices and bounds that
its validation asks for.
"""

from vcjob.api.schema.references import LOCAL_OBJECT_REFERENCE
from vcjob.api.schema.types import BOOLEAN, INTEGER, TEXT, ListOf, MapOf, record, required

AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE = record(
    "AWSElasticBlockStoreVolumeSource",
    {
        "fsType": TEXT,
        "partition": INTEGER,
        "readOnly": BOOLEAN,
        "volumeID": required(TEXT),
    },
)

AZURE_DISK_VOLUME_SOURCE = record(
    "AzureDiskVolumeSource",
    {
        "cachingMode": TEXT,
        "diskName": required(TEXT),
        "diskURI": required(TEXT),
        "fsType": TEXT,
        "kind": TEXT,
        "readOnly": BOOLEAN,
    },
)

AZURE_FILE_VOLUME_SOURCE = record(
    "AzureFileVolumeSource",
    {
        "readOnly": BOOLEAN,
        "secretName": required(TEXT),
        "shareName": required(TEXT),
    },
)

CEPH_FS_VOLUME_SOURCE = record(
    "CephFSVolumeSource",
    {
        "monitors": required(ListOf(TEXT)),
        "path": TEXT,
        "readOnly": BOOLEAN,
        "secretFile": TEXT,
        "secretRef": LOCAL_OBJECT_REFERENCE,
        "user": TEXT,
    },
)

CINDER_VOLUME_SOURCE = record(
    "CinderVolumeSource",
    {
        "fsType": TEXT,
        "readOnly": BOOLEAN,
        "secretRef": LOCAL_OBJECT_REFERENCE,
        "volumeID": required(TEXT),
    },
)

FC_VOLUME_SOURCE = record(
    "FCVolumeSource",
    {
        "fsType": TEXT,
        "lun": INTEGER,
        "readOnly": BOOLEAN,
        "targetWWNs": ListOf(TEXT),
        "wwids": ListOf(TEXT),
    },
)

FLEX_VOLUME_SOURCE = record(
    "FlexVolumeSource",
    {
        "driver": required(TEXT),
        "fsType": TEXT,
        "options": MapOf(TEXT),
        "readOnly": BOOLEAN,
        "secretRef": LOCAL_OBJECT_REFERENCE,
    },
)

FLOCKER_VOLUME_SOURCE = record(
    "FlockerVolumeSource",
    {
        "datasetName": TEXT,
        "datasetUUID": TEXT,
    },
)

GCE_PERSISTENT_DISK_VOLUME_SOURCE = record(
    "GCEPersistentDiskVolumeSource",
    {
        "fsType": TEXT,
        "partition": INTEGER,
        "pdName": required(TEXT),
        "readOnly": BOOLEAN,
    },
)

GIT_REPO_VOLUME_SOURCE = record(
    "GitRepoVolumeSource",
    {
        "directory": TEXT,
        "repository": required(TEXT),
        "revision": TEXT,
    },
)

GLUSTERFS_VOLUME_SOURCE = record(
    "GlusterfsVolumeSource",
    {
        "endpoints": required(TEXT),
        "path": required(TEXT),
        "readOnly": BOOLEAN,
    },
)

ISCSI_VOLUME_SOURCE = record(
    "ISCSIVolumeSource",
    {
        "chapAuthDiscovery": BOOLEAN,
        "chapAuthSession": BOOLEAN,
        "fsType": TEXT,
        "initiatorName": TEXT,
        "iqn": required(TEXT),
        "iscsiInterface": TEXT,
        "lun": required(INTEGER),
        "portals": ListOf(TEXT),
        "readOnly": BOOLEAN,
        "secretRef": LOCAL_OBJECT_REFERENCE,
        "targetPortal": required(TEXT),
    },
)

PHOTON_PERSISTENT_DISK_VOLUME_SOURCE = record(
    "PhotonPersistentDiskVolumeSource",
    {
        "fsType": TEXT,
        "pdID": required(TEXT),
    },
)

PORTWORX_VOLUME_SOURCE = record(
    "PortworxVolumeSource",
    {
        "fsType": TEXT,
        "readOnly": BOOLEAN,
        "volumeID": required(TEXT),
    },
)

QUOBYTE_VOLUME_SOURCE = record(
    "QuobyteVolumeSource",
    {
        "group": TEXT,
        "readOnly": BOOLEAN,
        "registry": required(TEXT),
        "tenant": TEXT,
        "user": TEXT,
        "volume": required(TEXT),
    },
)

RBD_VOLUME_SOURCE = record(
    "RBDVolumeSource",
    {
        "fsType": TEXT,
        "image": required(TEXT),
        "keyring": TEXT,
        "monitors": required(ListOf(TEXT)),
        "pool": TEXT,
        "readOnly": BOOLEAN,
        "secretRef": LOCAL_OBJECT_REFERENCE,
        "user": TEXT,
    },
)

SCALE_IO_VOLUME_SOURCE = record(
    "ScaleIOVolumeSource",
    {
        "fsType": TEXT,
        "gateway": required(TEXT),
        "protectionDomain": TEXT,
        "readOnly": BOOLEAN,
        "secretRef": required(LOCAL_OBJECT_REFERENCE),
        "sslEnabled": BOOLEAN,
        "storageMode": TEXT,
        "storagePool": TEXT,
        "system": required(TEXT),
        "volumeName": TEXT,
    },
)

STORAGE_OS_VOLUME_SOURCE = record(
    "StorageOSVolumeSource",
    {
        "fsType": TEXT,
        "readOnly": BOOLEAN,
        "secretRef": LOCAL_OBJECT_REFERENCE,
        "volumeName": TEXT,
        "volumeNamespace": TEXT,
    },
)

VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE = record(
    "VsphereVirtualDiskVolumeSource",
    {
        "fsType": TEXT,
        "storagePolicyID": TEXT,
        "storagePolicyName": TEXT,
        "volumePath": required(TEXT),
    },
)
