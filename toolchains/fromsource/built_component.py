"""Describe what is built from source as a component: its source as the ancestor, its patches, what it requires."""

from __future__ import annotations

from urllib.parse import urlsplit

from toolchains.config.projects import GitPin, SourcePackagePin
from toolchains.contents import licences
from toolchains.contents.component import Component, patches, properties, purl
from toolchains.fromsource.build import Wanted
from toolchains.patching.series import Series
from toolchains.system import paths


def component(want: Wanted) -> Component:
    """Return an upstream project's part as a component."""
    profile = want.profile
    return Component(
        "native",
        want.name,
        profile.version,
        licences.of_recipe(want.name),
        ancestors=(_source(want),),
        patches=patches(Series.load(paths.PATCHES / profile.patches)) if profile.patches else (),
        parts=tuple(component(each) for each in want.requires),
        properties=properties(
            inputs=want.identity,
            beside=want.upstream.beside,
            taken=list(profile.take),
            left_out=list(profile.left_out),
            options=[f"{name}={value}" for name, value in sorted(want.options.items())],
        ),
    )


def _source(want: Wanted) -> Component:
    """Return a project's source, by the commit or the Debian source package that it is locked to."""
    pin, licence = want.profile.source, licences.of_recipe(want.name)
    if want.folder is None and isinstance(pin, SourcePackagePin) and want.locked is not None:
        version = want.locked.version
        where = purl("deb", pin.package, version, namespace="debian", arch="source", distro=pin.suite)
        files = properties(file=[f"{file.filename} sha256:{file.sha256}" for file in want.locked.files])
        return Component("source", pin.package, version, licence, where, properties=files)
    commit, where = want.source.commit, ""
    if want.folder is None and isinstance(pin, GitPin):
        place = urlsplit(pin.urls[0])
        owner, _, name = place.path.strip("/").removesuffix(".git").partition("/")
        where = purl("github", name, commit, namespace=owner) if place.hostname == "github.com" else ""
    return Component("source", want.name, commit, licence, where, commit=commit)
