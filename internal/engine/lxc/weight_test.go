package lxc

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"orrery/internal/engine"
)

// TestWeight: the weight of a site's group follows its running nodes as they start and stop.
func TestWeight(t *testing.T) {
	g := newGround(t)
	file, one := "/sys/fs/cgroup/cpu/orrery/"+testSite+"/cpu.shares", 1024
	if _, err := os.Stat("/sys/fs/cgroup/cpu/cgroup.procs"); err != nil {
		file, one = "/sys/fs/cgroup/orrery/"+testSite+"/cpu.weight", 100
	}
	weighs := func(nodes int) {
		t.Helper()
		text, err := os.ReadFile(file)
		if got := strings.TrimSpace(string(text)); err != nil || got != fmt.Sprint(nodes*one) {
			t.Errorf("with %d nodes the site weighs %q: %v", nodes, got, err)
		}
	}
	var refs []engine.Ref
	for i := range 3 {
		n := g.Node(fmt.Sprintf("weight%d", i), 160+i)
		ref := engine.RefOf(n)
		refs = append(refs, ref)
		must(t, g.Create(t.Context(), n))
		t.Cleanup(func() { must(t, g.Destroy(context.Background(), ref)) })
		must(t, g.Start(t.Context(), ref))
		weighs(i + 1)
	}
	must(t, g.Stop(t.Context(), refs[0]))
	weighs(2)
	must(t, g.Destroy(t.Context(), refs[1]))
	weighs(1)
}
