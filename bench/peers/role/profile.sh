export GAUGE_CONFIG=/etc/gauge.json
