// Scale measures the cost of observing many hosts and of planning for them. It simulates the hosts
// in this process, each behind the helper protocol. See README.md of bench/hosts.
//
//	go run ./bench/hosts/scale [SHAPE [HOSTS…]]
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"

	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/plan"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		args = []string{"racks"}
	}
	if len(args) == 1 {
		args = append(args, "10", "100", "300", "1000")
	}
	shape, ok := shapes[args[0]]
	if !ok {
		return fmt.Errorf("unknown shape of sites %q", args[0])
	}
	if os.Getenv("SCALE_ONE") != "" {
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return one(n, shape(n))
	}
	fmt.Printf("%s\n%6s %7s | %9s %9s %9s %9s | %9s %9s %9s %9s | %9s\n", args[0], "hosts", "nodes", "new: all",
		"observe", "plan", "cpu", "no change", "observe", "plan", "cpu", "peak MiB")
	for _, n := range args[1:] {
		cmd := exec.Command(os.Args[0], args[0], n) // in a separate process, to measure its peak memory
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "SCALE_ONE=1"), os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	return nil
}

// one plans a new site, and then the same site when all of it is up.
func one(n int, text string) error {
	dir, err := os.MkdirTemp("", "orrery-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is a site directory
	for name, content := range map[string]string{"site.toml": text, "roles/web/role.toml": role} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	all := newWorld(n)
	fresh, p, err := preview(dir, all)
	if err != nil {
		return err
	}
	if len(p.Nodes()) != n*nodesPerHost {
		return fmt.Errorf("%d nodes are planned", len(p.Nodes()))
	}
	all.absorb(p)
	p = nil
	runtime.GC()
	if path := os.Getenv("SCALE_PROFILE"); path != "" {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it is written by then
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	again, p, err := preview(dir, all)
	if err != nil {
		return err
	}
	if !p.Empty() {
		return fmt.Errorf("nothing changed, but %d steps are planned: %s", len(p.Steps), p.Steps[0])
	}
	fmt.Printf("%6d %7d |%v |%v | %9d\n", n, n*nodesPerHost, fresh, again, peak())
	return nil
}

// A spell has the durations of the parts of a plan, and the processor time.
type spell struct{ load, reach, observe, plan, cpu time.Duration }

// String returns the total, observe and plan durations and the processor time in seconds.
func (s spell) String() string {
	return fmt.Sprintf(" %9.2f %9.2f %9.2f %9.2f", (s.load + s.reach + s.observe + s.plan).Seconds(),
		s.observe.Seconds(), s.plan.Seconds(), s.cpu.Seconds())
}

// preview does the same as orrery plan.
func preview(dir string, all *world) (t spell, p *plan.Plan, err error) {
	ctx := context.Background()
	c := &control.Session{SiteDir: dir, Machine: all, Links: &hosts.Links{}, Watcher: told{}}
	defer c.Links.Close()
	began, used := time.Now(), processor()
	defer func() { t.cpu = processor() - used }()
	lap := func(of *time.Duration) { *of, began = time.Since(began), time.Now() }
	s, err := c.Load()
	if err != nil {
		return t, nil, err
	}
	lap(&t.load)
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return t, nil, err
	}
	lap(&t.reach)
	seen, err := c.Observe(ctx, f)
	if err != nil {
		return t, nil, err
	}
	lap(&t.observe)
	p, err = plan.Up(s, seen, plan.Goal{Releases: f.Views().Releases()})
	lap(&t.plan)
	if os.Getenv("SCALE_LAPS") != "" {
		fmt.Fprintf(os.Stderr, "load %v, reach %v, observe %v, plan %v\n", t.load, t.reach, t.observe, t.plan)
	}
	return t, p, err
}

// told prints what would be shown to the user.
type told struct{ control.Watcher }

func (told) Event(e control.Event) { fmt.Fprintln(os.Stderr, e.Text) }

// processor returns the processor time of this process.
func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak returns the peak resident memory of this process in MiB.
func peak() int {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.Atoi(strings.Fields(rest)[0])
			return kib >> 10
		}
	}
	return 0
}
