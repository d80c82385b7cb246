"""Backends for models at DashScope (Alibaba Cloud Model Studio)."""
