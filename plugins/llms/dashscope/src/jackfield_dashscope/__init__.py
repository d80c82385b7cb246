"""Models at DashScope, Alibaba Cloud Model Studio, for Jackfield."""
