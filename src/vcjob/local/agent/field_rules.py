"""What this machine makes of every field of a pod template, as data: one row for fields alike.

``fields`` uses it; a test holds it against the schema, so that no field is ignored silently.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec


class Verdict(StrEnum):
    """What becomes of a field: done, told and not done, or a reason not to start at all."""

    HONOURED = "honoured"
    WARNED = "warned"
    REFUSED = "refused"


class Rule(msgspec.Struct, frozen=True):
    """One row: fields, their verdict, and what happens.

    ``fields`` are paths like ``spec.volumes[].name``; ``C`` at the start stands for a container
    in each of the lists of containers. A rule covers what lies below its fields unless ``alone``,
    and the longest field that matches decides. Values in ``same`` ask for what happens anyway, and
    draw nothing.
    """

    fields: tuple[str, ...]
    verdict: Verdict
    text: str
    same: tuple[Any, ...] = ()
    alone: bool = False


def _honoured(*fields: str, text: str, alone: bool = False) -> Rule:
    return Rule(fields, Verdict.HONOURED, text, alone=alone)


def _warned(*fields: str, text: str, same: tuple[Any, ...] = ()) -> Rule:
    return Rule(fields, Verdict.WARNED, text, same)


def _refused(*fields: str, text: str, same: tuple[Any, ...] = ()) -> Rule:
    return Rule(fields, Verdict.REFUSED, text, same)


GROUPS: Mapping[str, tuple[Rule, ...]] = {
    "Pod": (
        _honoured("metadata", "spec", text="a pod like those of a cluster", alone=True),
        _honoured(
            *("metadata.annotations", "metadata.labels", "metadata.namespace"),
            text="kept; namespaces separate names, not rights",
        ),
        _honoured(
            *("metadata.name", "metadata.creationTimestamp"),
            text="the Job names its pods; a name in the template has no effect, as on a cluster",
        ),
        _honoured("metadata.finalizers", text="kept; the pod's object waits for them"),
        _honoured("spec.restartPolicy", text="Always, OnFailure and Never, with growing back-off"),
        _honoured("spec.terminationGracePeriodSeconds", text="SIGTERM, then SIGKILL of the tree"),
        _honoured("spec.activeDeadlineSeconds", text="the pod fails with DeadlineExceeded"),
        _warned(
            "spec.shareProcessNamespace",
            text="each container sees its own processes only",
        ),
        _warned("spec.readinessGates", text="nothing here sets them; they are not waited for"),
        _warned(
            "spec.os", text="this machine runs Linux programs", same=({"name": "linux"},)
        ),
    ),
    "Names and network": (
        _honoured(
            *("spec.hostname", "spec.subdomain", "spec.setHostnameAsFQDN", "spec.hostnameOverride"),
            text="host name and DNS name of the pod",
        ),
        _honoured("spec.hostAliases", text="lines of /etc/hosts"),
        _honoured("spec.dnsPolicy", "spec.dnsConfig", text="/etc/resolv.conf of the containers"),
        _honoured(
            "spec.enableServiceLinks",
            text="Services have no address of their own here, so there are no variables for them",
        ),
        _honoured("C.ports", text="for SRV names, probes and network policy", alone=True),
        _honoured(
            *("C.ports[].containerPort", "C.ports[].name", "C.ports[].protocol"),
            text="any port works, declared or not",
        ),
        _warned(
            *("C.ports[].hostPort", "C.ports[].hostIP"),
            text="nothing is opened on this machine; pods reach each other directly",
            same=(0,),
        ),
        _warned("spec.hostNetwork", text="a network of its own is what every pod gets"),
    ),
    "Containers": (
        _honoured(
            *("spec.containers", "spec.initContainers"),
            text="several in one network; init containers in turn, those that always restart "
            "run beside",
            alone=True,
        ),
        _refused(
            "spec.ephemeralContainers",
            text="they belong into running pods, not into a template",
        ),
        _honoured("C.name", text="marks its output"),
        _honoured(
            *("C.image", "C.imagePullPolicy", "spec.imagePullSecrets"),
            text="not pulled: containers run this machine's programs (a command that is not "
            "there is named before the start)",
        ),
        _honoured("C.command", "C.args", "C.workingDir", text="with `$(VAR)` filled in"),
        _honoured("C.env", text="literals and `$(VAR)`", alone=True),
        _honoured("C.env[].name", "C.env[].value", text="in order; later ones win"),
        _honoured("C.env[].valueFrom", text="see the next row", alone=True),
        _honoured(
            *(f"C.env[].valueFrom.{ref}KeyRef" for ref in ("configMap", "secret")),
            *("C.env[].valueFrom.fieldRef", "C.env[].valueFrom.resourceFieldRef", "C.envFrom"),
            text="ConfigMaps and Secrets of the files; limits that are not set are this machine's",
        ),
        _refused("C.env[].valueFrom.fileKeyRef", text="variables from files are not read"),
        _honoured(
            *("C.restartPolicy", "C.restartPolicyRules"),
            text="restart rules of single containers",
        ),
        _honoured(
            *("C.terminationMessagePath", "C.terminationMessagePolicy"),
            text="the message stands in the pod's status",
        ),
        _warned(
            *("C.stdin", "C.stdinOnce", "C.tty"),
            text="output is a pipe and standard input /dev/null; on an engine that serves, `stdin` "
            "is what clients send that attach, and `tty` gives a terminal",
        ),
    ),
    "Probes and hooks": (
        *(
            _honoured(f"C.{probe}", text=text, alone=True)
            for probe, text in (
                ("livenessProbe", "a failing container is restarted"),
                ("readinessProbe", "decides over readiness and over the Service's name"),
                ("startupProbe", "the other two wait for it"),
            )
        ),
        _honoured(
            *(
                f"C.{probe}.{field}"
                for probe in ("livenessProbe", "readinessProbe", "startupProbe")
                for field in (
                    *("httpGet", "tcpSocket", "initialDelaySeconds", "periodSeconds"),
                    *("timeoutSeconds", "successThreshold", "failureThreshold"),
                    "terminationGracePeriodSeconds",
                )
            ),
            text="asked from the node's address, which no network policy keeps out",
        ),
        _honoured(
            *(f"C.{probe}.exec" for probe in ("livenessProbe", "readinessProbe", "startupProbe")),
            text="run in the container, with its rights; killed after timeoutSeconds",
        ),
        _warned(
            *(f"C.{probe}.grpc" for probe in ("livenessProbe", "readinessProbe", "startupProbe")),
            text="not asked; the probe counts as passed",
        ),
        _honoured("C.lifecycle", text="see the next rows", alone=True),
        _honoured("C.lifecycle.stopSignal", text="sent instead of SIGTERM"),
        _honoured(
            *(f"C.lifecycle.{hook}" for hook in ("postStart", "preStop")),
            text="a container whose postStart fails is ended; preStop is part of the grace period",
            alone=True,
        ),
        _honoured(
            *(
                f"C.lifecycle.{hook}.{kind}"
                for hook in ("postStart", "preStop")
                for kind in ("httpGet", "tcpSocket", "sleep")
            ),
            text="asked from outside the container",
        ),
        _honoured(
            *(f"C.lifecycle.{hook}.exec" for hook in ("postStart", "preStop")),
            text="run in the container, with its rights",
        ),
    ),
    "Resources": (
        _honoured("C.resources", text="see the next rows", alone=True),
        _honoured(
            "C.resources.requests",
            text="counted before a gang starts, against this machine's cpu and memory and none of "
            "anything else; what has only limits is not counted",
        ),
        _honoured(
            "C.resources.limits",
            text="memory is enforced (by control group, else by watching); cpu is not throttled",
        ),
        _warned("C.resources.claims", "spec.resourceClaims", text="no device drivers run here"),
        _warned("C.resizePolicy", text="pods are not resized while they run"),
        _warned("spec.resources", text="limits count for each container, not for the pod"),
        _warned("spec.overhead", text="sandboxes cost about 1 MB here, whatever is declared"),
    ),
    "Scheduling": (
        _honoured(
            *("spec.schedulerName", "spec.priorityClassName", "spec.priority"),
            text="one gang scheduler takes all; higher priorities start first",
        ),
        _honoured("spec.preemptionPolicy", text="no running pod is ended for another one"),
        _honoured("spec.tolerations", text="this machine has no taints"),
        _warned(
            *("spec.nodeName", "spec.nodeSelector", "spec.affinity"),
            text="there is one machine, and pods are placed on it",
        ),
        _warned("spec.topologySpreadConstraints", text="there is one machine to spread over"),
        _warned(
            "spec.schedulingGates",
            text="the pod waits until they are removed, which the engine's API can do; vcjob run "
            "alone has nobody who does",
        ),
        _warned("spec.runtimeClassName", text="there is one way to run containers here"),
    ),
    "Security": (
        _honoured("spec.securityContext", "C.securityContext", text="see below", alone=True),
        _honoured(
            *(f"{at}.{field}" for at in ("spec.securityContext", "C.securityContext")
              for field in ("runAsUser", "runAsGroup", "runAsNonRoot")),
            *("spec.securityContext.supplementalGroups", "spec.securityContext.fsGroup"),
            text="numbers that this machine can give (all as root; as a user those of "
            "/etc/subuid, else 0 alone), others draw a warning",
        ),
        _honoured(
            "spec.securityContext.fsGroupChangePolicy",
            text="files change owners only where the volume's directory has not the right one",
        ),
        _honoured(
            *("C.securityContext.capabilities", "C.securityContext.readOnlyRootFilesystem"),
            text="dropping works; the root can be read-only",
        ),
        _warned("C.securityContext.capabilities.add", text="not granted"),
        _warned(
            "C.securityContext.privileged",
            text="not granted: containers have a runtime's default capabilities",
        ),
        _warned("spec.hostPID", text="a container sees its own processes only"),
        _warned("spec.hostIPC", text="no memory segments of this machine are shared"),
        _honoured(
            "spec.hostUsers", text="every container has a user namespace of its own, asked or not"
        ),
        _warned(
            "C.securityContext.allowPrivilegeEscalation",
            text="never: set-uid programs gain no rights",
        ),
        _warned("C.securityContext.procMount", text="always Default", same=("Default",)),
        _warned(
            *(f"{at}.{field}" for at in ("spec.securityContext", "C.securityContext")
              for field in ("seccompProfile", "appArmorProfile", "seLinuxOptions")),
            "spec.securityContext.seLinuxChangePolicy",
            text="no profile is loaded; the namespaces are what confines",
            same=({"type": "RuntimeDefault"}, {"type": "Unconfined"}),
        ),
        _refused(
            "spec.securityContext.windowsOptions", "C.securityContext.windowsOptions",
            text="this machine runs Linux programs",
        ),
        _warned(
            "spec.securityContext.sysctls", text="kernel settings stay as this machine has them"
        ),
        _warned(
            "spec.securityContext.supplementalGroupsPolicy",
            text="only the groups named in the pod are given",
            same=("Strict",),
        ),
        _warned(
            *("spec.serviceAccountName", "spec.serviceAccount"),
            text="only its name can be read (fieldRef): there is no API server to log in to",
            same=("default",),
        ),
        _honoured("spec.automountServiceAccountToken", text="no token is mounted"),
    ),
    "Volumes": (
        _honoured("spec.volumes", "spec.volumes[].name", text="see the next rows", alone=True),
        _honoured(
            *(f"spec.volumes[].{kind}" for kind in ("configMap", "secret", "downwardAPI")),
            text="read-only files that follow changes; items, modes and optional",
        ),
        _honoured("spec.volumes[].projected", text="the same, of several sources"),
        _refused(
            *(f"spec.volumes[].projected.sources[].{kind}"
              for kind in ("serviceAccountToken", "podCertificate")),
            text="there is no server here that could issue it",
        ),
        _warned(
            "spec.volumes[].projected.sources[].clusterTrustBundle",
            text="left out if optional; else the pod waits for it",
        ),
        _honoured("spec.volumes[].emptyDir", text="a directory that goes with the pod", alone=True),
        _honoured(
            "spec.volumes[].emptyDir.medium", text='"" or Memory; other media are refused'
        ),
        _warned(
            "spec.volumes[].emptyDir.sizeLimit", text="kept in Memory; on disk it is not watched"
        ),
        _honoured(
            "spec.volumes[].persistentVolumeClaim", text="a directory kept for each claim"
        ),
        _honoured("spec.volumes[].ephemeral", text="a directory that goes with the pod"),
        _honoured(
            "spec.volumes[].hostPath",
            text="below directories allowed with --allow-host-path or -v; others are refused",
        ),
        _refused(
            *(f"spec.volumes[].{kind}" for kind in (
                "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc",
                "flexVolume", "flocker", "gcePersistentDisk", "gitRepo", "glusterfs", "image",
                "iscsi", "nfs", "photonPersistentDisk", "portworxVolume", "quobyte", "rbd",
                "scaleIO", "storageos", "vsphereVolume",
            )),
            text="not to be had on this machine; show a directory with -v SRC:DST",
        ),
        _honoured("C.volumeMounts", text="in the container's own view", alone=True),
        _honoured(
            *(f"C.volumeMounts[].{field}" for field in (
                "mountPath", "name", "readOnly", "subPath", "subPathExpr",
            )),
            text="a link in a volume never leads out of it",
        ),
        _warned(
            "C.volumeMounts[].mountPropagation",
            text="mounts made inside a container stay in it",
            same=("None", "HostToContainer"),
        ),
        _warned(
            "C.volumeMounts[].recursiveReadOnly",
            text="readOnly covers what is mounted below anyway",
            same=("IfPossible", "Disabled"),
        ),
        _refused("C.volumeDevices", text="block devices of this machine are not given to pods"),
    ),
}  # fmt: skip
"""The rows, under the headings that docs/local.md has them."""
