"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from jackfield_testkit.suites import ObserverSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-prometheus"


class TestObserver(ObserverSuite):
    component = "jackfield-prometheus/prometheus"
