package capture

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/test/need"
)

// inside is a place in a network namespace.
type inside struct {
	host.Local
	namespace string
}

func (i inside) Run(ctx context.Context, c host.Command) error {
	c.Args = append([]string{"ip", "netns", "exec", i.namespace}, c.Args...)
	return i.Local.Run(ctx, c)
}

// trial creates two network namespaces that are connected by a veth pair, and a trial between them.
func trial(t *testing.T) *test.Trial {
	t.Helper()
	need.Integration(t)
	near, far := fmt.Sprintf("h3near%d", os.Getpid()), fmt.Sprintf("h3far%d", os.Getpid())
	sweep(t)
	t.Cleanup(func() {
		_ = exec.Command("ip", "netns", "delete", near).Run()
		_ = exec.Command("ip", "netns", "delete", far).Run()
	})
	sh(t, `
		ip netns add $1 && ip netns add $2
		ip -n $1 link add eth0 type veth peer name eth0 netns $2
		ip -n $1 address add 10.99.133.1/24 dev eth0
		ip -n $2 address add 10.99.133.2/24 dev eth0
		for n in $1 $2; do ip -n $n link set eth0 up; ip -n $n link set lo up; done
		for i in $(seq 50); do ip netns exec $2 ping -qc1 -W1 10.99.133.1 >/dev/null && exit; done; exit 1`, near, far)
	program := orrery(t)
	words := func(name string) []string {
		if name == place.Orrery {
			return []string{program}
		}
		return []string{name}
	}
	at := func(namespace, address string) *place.Place {
		return &place.Place{Runner: inside{host.Local{Name: namespace}, namespace}, Name: namespace[:len("h3far")],
			Node: namespace, Interface: "eth0",
			Address: netip.MustParseAddr(address), Dir: t.TempDir(), Root: "/", Programs: words}
	}
	return &test.Trial{Round: 1, Near: at(near, "10.99.133.1"), Far: at(far, "10.99.133.2"), Of: 1,
		Barrier: func(context.Context) error { return nil }, Keep: func(string, []byte) error { return nil }}
}

// sweep removes namespaces left behind by killed tests.
func sweep(t *testing.T) {
	left, _ := filepath.Glob("/run/netns/h3*")
	for _, path := range left {
		name := filepath.Base(path)
		pid := strings.TrimLeft(name, "h3nearf")
		if _, err := os.Stat("/proc/" + pid); err != nil && pid != "" {
			t.Logf("%s was left by a killed test", name)
			_ = exec.Command("ip", "netns", "delete", name).Run()
		}
	}
}

func sh(t *testing.T, script string, args ...string) {
	t.Helper()
	if out, err := exec.Command("sh", append([]string{"-c", script, "sh"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// orrery builds the program once for all tests.
func orrery(t *testing.T) string {
	t.Helper()
	if program := os.Getenv("ORRERY_TEST_PROGRAM"); program != "" {
		return program
	}
	program := filepath.Join(t.TempDir(), "orrery")
	build := exec.Command("go", "build", "-o", program, "orrery/cmd/orrery-lab")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}
