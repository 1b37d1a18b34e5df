package site

import (
	"fmt"
	"strings"
	"time"
)

// A HealthCheck defines when a node is healthy. Exactly one of the keys up to NTP is set.
type HealthCheck struct {
	Line      int
	TCP       int           `toml:"tcp"`
	TCPParam  string        `json:",omitempty"` // {{.Param.NAME}} in the place of TCP; see package params
	HTTP      string        `toml:"http"`       // may contain {{.Param.NAME}}
	Command   []string      `toml:"command"`
	Mount     string        `toml:"mount" json:",omitempty"`      // mount point in the node
	Unit      string        `toml:"unit" json:",omitempty"`       // unit of systemd
	DNS       string        `toml:"dns" json:",omitempty"`        // NAME or NAME@SERVER
	NTP       string        `toml:"ntp" json:",omitempty"`        // address of a server
	MaxOffset time.Duration `toml:"max_offset" json:",omitempty"` // of the server's clock; 0 stands for one second
	Timeout   time.Duration `toml:"timeout" default:"5s"`         // of one attempt
	Interval  time.Duration `toml:"interval" default:"500ms"`     // between attempts
	Within    time.Duration `toml:"within" default:"1m"`          // time limit for the first success
}

// HealthKinds are the keys of the kinds of health checks.
var HealthKinds = []string{"http", "tcp", "command", "mount", "unit", "dns", "ntp"}

// Subject returns what a check of a kind checks, or "" if it is of another kind.
func (h *HealthCheck) Subject(kind string) string {
	switch kind {
	case "http":
		return h.HTTP
	case "tcp":
		if h.TCP != 0 {
			return fmt.Sprint(h.TCP)
		}
		return h.TCPParam
	case "command":
		return strings.Join(h.Command, " ")
	case "mount":
		return h.Mount
	case "unit":
		return h.Unit
	case "dns":
		return h.DNS
	case "ntp":
		return h.NTP
	}
	return ""
}

// Kind returns the kind of a health check.
func (h *HealthCheck) Kind() string {
	for _, kind := range HealthKinds {
		if h.Subject(kind) != "" {
			return kind
		}
	}
	return "command"
}

// NameAndServer returns the name that a DNS check looks up, and the address of the server that it asks.
func (h *HealthCheck) NameAndServer() (name, server string) {
	name, server, ok := strings.Cut(h.DNS, "@")
	if !ok {
		server = "127.0.0.1"
	}
	return name, server
}
