package member

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/strict"
	"orrery/internal/tree"
)

// A Configuration is the host's configuration for members, from /etc/orrery/host.toml.
type Configuration struct {
	State   string `toml:"state"` // instead of /var/lib/orrery, because a member's environment is ignored
	Run     string `toml:"run"`   // instead of /run/orrery
	Members struct {
		Group string `toml:"group"` // users of this group may call
	} `toml:"members"`
	file string
}

// ReadConfiguration reads the configuration of a host. Only root may be able to write the file.
func ReadConfiguration(file string) (*Configuration, error) {
	var st unix.Stat_t
	if err := unix.Lstat(file, &st); err != nil {
		return nil, problem.New(problem.Unable, "this host is not configured for members").At(file).Because(err).
			Try("run make members GROUP=…")
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || !onlyRootWrites(&st) {
		return nil, refusedError("the configuration of the host must be a file that only root can write").At(file).
			Try("chown root: %s; chmod 644 %s", file, file)
	}
	text, err := tree.ReadFile(file, 64<<10)
	if err != nil {
		return nil, problem.New(problem.Unable, "the configuration of the host cannot be read").At(file).Because(err)
	}
	c := &Configuration{file: file}
	root, syntax := strict.Parse(text)
	if syntax != nil {
		return nil, problem.New(problem.Mistake, "%s", syntax.What).At(fmt.Sprintf("%s:%d", file, syntax.Line))
	}
	var mistakes problem.List
	strict.Table(root, "the configuration", func(at *strict.Node, p *problem.Problem) {
		mistakes = append(mistakes, p.At(fmt.Sprintf("%s:%d", file, at.Line)))
	}, c)
	for key, dir := range map[string]string{"state": c.State, "run": c.Run} {
		if dir != "" && !filepath.IsAbs(dir) {
			mistakes = append(mistakes, problem.New(problem.Mistake, "%s = %q does not begin with /", key,
				dir).At(file).Try("write the full path"))
		}
	}
	if c.Members.Group == "" || strings.ContainsAny(c.Members.Group, "@:\x00") {
		mistakes = append(mistakes, problem.New(problem.Mistake, "members.group = %q is not the name of a group",
			c.Members.Group).At(file).Try(`set [members] group = "orrery"`))
	}
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	return c, nil
}

// Dirs returns the directories in which this host stores Orrery's state.
func (c *Configuration) Dirs() host.Dirs {
	d := host.Dirs{State: host.StateDir, Run: host.RunDir}
	if c.State != "" {
		d.State = c.State
	}
	if c.Run != "" {
		d.Run = c.Run
	}
	return d
}
