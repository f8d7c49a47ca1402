from pathlib import Path

from vcjob.api.names import OUR_ANNOTATIONS
from vcjob.plugins.registry import installed_plugins

TEXT = (Path(__file__).parents[3] / "docs" / "plugins.md").read_text()


def test_every_annotation_of_ours_is_documented() -> None:
    assert not [one.key for one in OUR_ANNOTATIONS if f"`{one.key}`" not in TEXT]


def test_every_plugin_is_documented_with_its_arguments() -> None:
    registry = installed_plugins(third_party=False)
    for name in registry.names():
        _, heading, section = TEXT.partition(f"\n## {name}\n")
        assert heading
        section = section.partition("\n## ")[0]
        missing = [a.name for a in registry.find(name).arguments if f"`--{a.name}`" not in section]
        assert not missing
