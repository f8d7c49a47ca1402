"""Volumes of a pod and claims.

These are the fields of core/v1 in Kubernetes 1.34 (API reference), with the choices and bounds that
its validation asks for.
"""

from vcjob.api.schema.meta import OBJECT_META
from vcjob.api.schema.references import (
    LOCAL_OBJECT_REFERENCE,
    OBJECT_FIELD_SELECTOR,
    RESOURCE_FIELD_SELECTOR,
)
from vcjob.api.schema.scheduling import LABEL_SELECTOR
from vcjob.api.schema.storage_drivers import (
    AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE,
    AZURE_DISK_VOLUME_SOURCE,
    AZURE_FILE_VOLUME_SOURCE,
    CEPH_FS_VOLUME_SOURCE,
    CINDER_VOLUME_SOURCE,
    FC_VOLUME_SOURCE,
    FLEX_VOLUME_SOURCE,
    FLOCKER_VOLUME_SOURCE,
    GCE_PERSISTENT_DISK_VOLUME_SOURCE,
    GIT_REPO_VOLUME_SOURCE,
    GLUSTERFS_VOLUME_SOURCE,
    ISCSI_VOLUME_SOURCE,
    PHOTON_PERSISTENT_DISK_VOLUME_SOURCE,
    PORTWORX_VOLUME_SOURCE,
    QUOBYTE_VOLUME_SOURCE,
    RBD_VOLUME_SOURCE,
    SCALE_IO_VOLUME_SOURCE,
    STORAGE_OS_VOLUME_SOURCE,
    VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE,
)
from vcjob.api.schema.types import (
    BOOLEAN,
    FILE_MODE,
    QUANTITY,
    RESOURCES,
    SUBDOMAIN,
    TEXT,
    Integer,
    ListOf,
    MapOf,
    Text,
    choice,
    record,
    required,
)

KEY_TO_PATH = record(
    "KeyToPath",
    {
        "key": required(Text("config-map-key", min_length=1)),
        "mode": FILE_MODE,
        "path": required(Text("downward-path", min_length=1)),
    },
)

CONFIG_MAP_VOLUME_SOURCE = record(
    "ConfigMapVolumeSource",
    {
        "defaultMode": FILE_MODE,
        "items": ListOf(KEY_TO_PATH),
        "name": SUBDOMAIN,
        "optional": BOOLEAN,
    },
)

CSI_VOLUME_SOURCE = record(
    "CSIVolumeSource",
    {
        "driver": required(TEXT),
        "fsType": TEXT,
        "nodePublishSecretRef": LOCAL_OBJECT_REFERENCE,
        "readOnly": BOOLEAN,
        "volumeAttributes": MapOf(TEXT),
    },
)

DOWNWARD_API_VOLUME_FILE = record(
    "DownwardAPIVolumeFile",
    {
        "fieldRef": OBJECT_FIELD_SELECTOR,
        "mode": FILE_MODE,
        "path": required(Text("downward-path", min_length=1)),
        "resourceFieldRef": RESOURCE_FIELD_SELECTOR,
    },
)

DOWNWARD_API_VOLUME_SOURCE = record(
    "DownwardAPIVolumeSource",
    {
        "defaultMode": FILE_MODE,
        "items": ListOf(DOWNWARD_API_VOLUME_FILE),
    },
)

EMPTY_DIR_VOLUME_SOURCE = record(
    "EmptyDirVolumeSource",
    {
        "medium": TEXT,
        "sizeLimit": QUANTITY,
    },
)

TYPED_LOCAL_OBJECT_REFERENCE = record(
    "TypedLocalObjectReference",
    {
        "apiGroup": TEXT,
        "kind": required(TEXT),
        "name": required(TEXT),
    },
)

TYPED_OBJECT_REFERENCE = record(
    "TypedObjectReference",
    {
        "apiGroup": TEXT,
        "kind": required(TEXT),
        "name": required(TEXT),
        "namespace": TEXT,
    },
)

VOLUME_RESOURCE_REQUIREMENTS = record(
    "VolumeResourceRequirements",
    {
        "limits": RESOURCES,
        "requests": RESOURCES,
    },
)

PERSISTENT_VOLUME_CLAIM_SPEC = record(
    "PersistentVolumeClaimSpec",
    {
        "accessModes": ListOf(
            choice("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
        ),
        "dataSource": TYPED_LOCAL_OBJECT_REFERENCE,
        "dataSourceRef": TYPED_OBJECT_REFERENCE,
        "resources": VOLUME_RESOURCE_REQUIREMENTS,
        "selector": LABEL_SELECTOR,
        "storageClassName": SUBDOMAIN,
        "volumeAttributesClassName": TEXT,
        "volumeMode": choice("Filesystem", "Block"),
        "volumeName": TEXT,
    },
    keeps_unknown=True,
)

PERSISTENT_VOLUME_CLAIM_TEMPLATE = record(
    "PersistentVolumeClaimTemplate",
    {
        "metadata": OBJECT_META,
        "spec": required(PERSISTENT_VOLUME_CLAIM_SPEC),
    },
)

EPHEMERAL_VOLUME_SOURCE = record(
    "EphemeralVolumeSource",
    {
        "volumeClaimTemplate": PERSISTENT_VOLUME_CLAIM_TEMPLATE,
    },
)

HOST_PATH_VOLUME_SOURCE = record(
    "HostPathVolumeSource",
    {
        "path": required(Text("path-without-backsteps", min_length=1)),
        "type": choice(
            "DirectoryOrCreate",
            "Directory",
            "FileOrCreate",
            "File",
            "Socket",
            "CharDevice",
            "BlockDevice",
        ),
    },
)

IMAGE_VOLUME_SOURCE = record(
    "ImageVolumeSource",
    {
        "pullPolicy": choice("Always", "IfNotPresent", "Never"),
        "reference": TEXT,
    },
)

NFS_VOLUME_SOURCE = record(
    "NFSVolumeSource",
    {
        "path": required(Text(min_length=1)),
        "readOnly": BOOLEAN,
        "server": required(Text(min_length=1)),
    },
)

PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE = record(
    "PersistentVolumeClaimVolumeSource",
    {
        "claimName": required(Text("dns-1123-subdomain", min_length=1)),
        "readOnly": BOOLEAN,
    },
)

CLUSTER_TRUST_BUNDLE_PROJECTION = record(
    "ClusterTrustBundleProjection",
    {
        "labelSelector": LABEL_SELECTOR,
        "name": TEXT,
        "optional": BOOLEAN,
        "path": required(Text("downward-path", min_length=1)),
        "signerName": TEXT,
    },
)

CONFIG_MAP_PROJECTION = record(
    "ConfigMapProjection",
    {
        "items": ListOf(KEY_TO_PATH),
        "name": SUBDOMAIN,
        "optional": BOOLEAN,
    },
)

DOWNWARD_API_PROJECTION = record(
    "DownwardAPIProjection",
    {
        "items": ListOf(DOWNWARD_API_VOLUME_FILE),
    },
)

POD_CERTIFICATE_PROJECTION = record(
    "PodCertificateProjection",
    {
        "certificateChainPath": Text("downward-path"),
        "credentialBundlePath": Text("downward-path"),
        "keyPath": Text("downward-path"),
        "keyType": required(
            choice("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
        ),
        "maxExpirationSeconds": Integer(3600, 7862400),
        "signerName": required(TEXT),
    },
)

SECRET_PROJECTION = record(
    "SecretProjection",
    {
        "items": ListOf(KEY_TO_PATH),
        "name": SUBDOMAIN,
        "optional": BOOLEAN,
    },
)

SERVICE_ACCOUNT_TOKEN_PROJECTION = record(
    "ServiceAccountTokenProjection",
    {
        "audience": TEXT,
        "expirationSeconds": Integer(600, 2**32),
        "path": required(Text("downward-path", min_length=1)),
    },
)

VOLUME_PROJECTION = record(
    "VolumeProjection",
    {
        "clusterTrustBundle": CLUSTER_TRUST_BUNDLE_PROJECTION,
        "configMap": CONFIG_MAP_PROJECTION,
        "downwardAPI": DOWNWARD_API_PROJECTION,
        "podCertificate": POD_CERTIFICATE_PROJECTION,
        "secret": SECRET_PROJECTION,
        "serviceAccountToken": SERVICE_ACCOUNT_TOKEN_PROJECTION,
    },
)

PROJECTED_VOLUME_SOURCE = record(
    "ProjectedVolumeSource",
    {
        "defaultMode": FILE_MODE,
        "sources": ListOf(VOLUME_PROJECTION),
    },
)

SECRET_VOLUME_SOURCE = record(
    "SecretVolumeSource",
    {
        "defaultMode": FILE_MODE,
        "items": ListOf(KEY_TO_PATH),
        "optional": BOOLEAN,
        "secretName": SUBDOMAIN,
    },
)

VOLUME = record(
    "Volume",
    {
        "awsElasticBlockStore": AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE,
        "azureDisk": AZURE_DISK_VOLUME_SOURCE,
        "azureFile": AZURE_FILE_VOLUME_SOURCE,
        "cephfs": CEPH_FS_VOLUME_SOURCE,
        "cinder": CINDER_VOLUME_SOURCE,
        "configMap": CONFIG_MAP_VOLUME_SOURCE,
        "csi": CSI_VOLUME_SOURCE,
        "downwardAPI": DOWNWARD_API_VOLUME_SOURCE,
        "emptyDir": EMPTY_DIR_VOLUME_SOURCE,
        "ephemeral": EPHEMERAL_VOLUME_SOURCE,
        "fc": FC_VOLUME_SOURCE,
        "flexVolume": FLEX_VOLUME_SOURCE,
        "flocker": FLOCKER_VOLUME_SOURCE,
        "gcePersistentDisk": GCE_PERSISTENT_DISK_VOLUME_SOURCE,
        "gitRepo": GIT_REPO_VOLUME_SOURCE,
        "glusterfs": GLUSTERFS_VOLUME_SOURCE,
        "hostPath": HOST_PATH_VOLUME_SOURCE,
        "image": IMAGE_VOLUME_SOURCE,
        "iscsi": ISCSI_VOLUME_SOURCE,
        "name": required(Text("dns-1123-label", min_length=1)),
        "nfs": NFS_VOLUME_SOURCE,
        "persistentVolumeClaim": PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE,
        "photonPersistentDisk": PHOTON_PERSISTENT_DISK_VOLUME_SOURCE,
        "portworxVolume": PORTWORX_VOLUME_SOURCE,
        "projected": PROJECTED_VOLUME_SOURCE,
        "quobyte": QUOBYTE_VOLUME_SOURCE,
        "rbd": RBD_VOLUME_SOURCE,
        "scaleIO": SCALE_IO_VOLUME_SOURCE,
        "secret": SECRET_VOLUME_SOURCE,
        "storageos": STORAGE_OS_VOLUME_SOURCE,
        "vsphereVolume": VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE,
    },
)
