"""Security contexts of pods and containers.

These are the fields of core/v1 in Kubernetes 1.34 (API reference), with the choices and bounds that
its validation asks for.
"""

from vcjob.api.schema.types import BOOLEAN, TEXT, USER_ID, ListOf, choice, record, required

APP_ARMOR_PROFILE = record(
    "AppArmorProfile",
    {
        "localhostProfile": TEXT,
        "type": required(choice("Localhost", "RuntimeDefault", "Unconfined")),
    },
)

CAPABILITIES = record(
    "Capabilities",
    {
        "add": ListOf(TEXT),
        "drop": ListOf(TEXT),
    },
)

SE_LINUX_OPTIONS = record(
    "SELinuxOptions",
    {
        "level": TEXT,
        "role": TEXT,
        "type": TEXT,
        "user": TEXT,
    },
)

SECCOMP_PROFILE = record(
    "SeccompProfile",
    {
        "localhostProfile": TEXT,
        "type": required(choice("Localhost", "RuntimeDefault", "Unconfined")),
    },
)

WINDOWS_SECURITY_CONTEXT_OPTIONS = record(
    "WindowsSecurityContextOptions",
    {
        "gmsaCredentialSpec": TEXT,
        "gmsaCredentialSpecName": TEXT,
        "hostProcess": BOOLEAN,
        "runAsUserName": TEXT,
    },
)

SECURITY_CONTEXT = record(
    "SecurityContext",
    {
        "allowPrivilegeEscalation": BOOLEAN,
        "appArmorProfile": APP_ARMOR_PROFILE,
        "capabilities": CAPABILITIES,
        "privileged": BOOLEAN,
        "procMount": choice("Default", "Unmasked"),
        "readOnlyRootFilesystem": BOOLEAN,
        "runAsGroup": USER_ID,
        "runAsNonRoot": BOOLEAN,
        "runAsUser": USER_ID,
        "seLinuxOptions": SE_LINUX_OPTIONS,
        "seccompProfile": SECCOMP_PROFILE,
        "windowsOptions": WINDOWS_SECURITY_CONTEXT_OPTIONS,
    },
)

SYSCTL = record(
    "Sysctl",
    {
        "name": required(TEXT),
        "value": required(TEXT),
    },
)

POD_SECURITY_CONTEXT = record(
    "PodSecurityContext",
    {
        "appArmorProfile": APP_ARMOR_PROFILE,
        "fsGroup": USER_ID,
        "fsGroupChangePolicy": choice("OnRootMismatch", "Always"),
        "runAsGroup": USER_ID,
        "runAsNonRoot": BOOLEAN,
        "runAsUser": USER_ID,
        "seLinuxChangePolicy": choice("Recursive", "MountOption"),
        "seLinuxOptions": SE_LINUX_OPTIONS,
        "seccompProfile": SECCOMP_PROFILE,
        "supplementalGroups": ListOf(USER_ID),
        "supplementalGroupsPolicy": choice("Merge", "Strict"),
        "sysctls": ListOf(SYSCTL, keys=("name",)),
        "windowsOptions": WINDOWS_SECURITY_CONTEXT_OPTIONS,
    },
)
