package control

import "orrery/internal/control/unattended"

// Unattended returns this machine as a host that carries out its stored plans for a site.
func Unattended(c *Session, key string) *unattended.Host {
	return &unattended.Host{
		Machine: c.Local(), Dirs: c.Dirs, Key: key, Say: func(err error) { c.Trouble(key, err) },
		Tell: func(format string, args ...any) { c.Outcome(key, format, args...) },
		Work: siteWork{c, key},
	}
}
