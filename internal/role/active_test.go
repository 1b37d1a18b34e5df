package role

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"orrery/internal/site"
)

// TestVolumesBelow: a service may be in a role above the one with its volume. Before an exclusive
// volume is removed from a node, the services of all roles that need it stop, the upper roles
// first. After the node gets it back, they are applied in the order of Configure: all boot steps,
// then all services. Roles that do not need it are left alone.
func TestVolumesBelow(t *testing.T) {
	s := cluster()
	s.Volumes = []site.Volume{{Name: "spool"}}
	s.Roles[0].Volumes = []site.VolumeUse{{Name: "spool", Path: "/var/spool", Owner: "root:root", Mode: 0o755,
		Exclusive: true, Quarantine: site.CopySnapshot}}
	s.Roles[0].Steps = append(s.Roles[0].Steps,
		site.Step{Line: 2, Name: "fill", When: site.Started, Script: []byte("true\n"), Interpreter: []string{"fill"},
			User: "root"})
	stopped := []string{"stop login.service", "stop slurmctld.service", "stop munge.service"}
	for name, c := range map[string]struct {
		do   func(*Job, context.Context) error
		want []string
	}{
		"let":    {(*Job).ReleaseVolumes, stopped},
		"retire": {(*Job).Retire, append([]string{"disable --now --quiet pager.service"}, stopped...)},
		"resume": {(*Job).Resume, []string{"start munge.service", "start slurmctld.service", "start login.service"}},
		"activate": {(*Job).Activate, []string{
			"put /etc/slurm.conf", "put /etc/motd", "put /etc/login", "key", "spool",
			"enable --now --quiet munge.service", "enable --now --quiet slurmctld.service", "enable --now --quiet login.service",
			"fill", "enable --now --quiet pager.service",
		}},
	} {
		in := &diary{}
		j := &Job{Duties: dutiesOf(t, s), In: in, Log: io.Discard, Say: func(string) {}, Live: true}
		if err := c.do(j, t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := done(in)
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], "systemctl ")
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: done was\n  %s\nnot\n  %s", name, strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
		}
	}
}
