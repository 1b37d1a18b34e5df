package mpi

import (
	"context"
	"errors"
	"path"
	"strconv"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// How ranks are started at the far end without SSH. On each other host, mpirun starts its daemon,
// orted, which then starts the rank. For that it runs an agent with the host's name and the daemon's
// command line, and the agent must run as long as the daemon (mpirun(1), plm_rsh_agent):
//
//	mpirun ── agent ──ask──► listener ──stdout──► the lab ── Far.Run ──► orted ── rank 1
//	   └── rank 0
//
// The agent is a script in the near place that writes the command line into a FIFO. The lab runs a
// listener in that place, which reads the command line and prints it. The lab then runs it at the
// far end. The listener holds a lock as long as it lives, and the agent ends when it gets the lock.
// So no process is left behind, whichever of them is killed.
const (
	launcher = "orrery_orted" // the word for orted in the command line
	agent    = `# the launch agent of the lab: see internal/lab/test/mpi/launch.go
cd "${0%/*}" || exit 1
shift
timeout 30 sh -c 'printf "%s\n" "$1" >ask' sh "$*" || exit 1
exec flock lock true </dev/null >/dev/null 2>&1
`
	listener = `cd "$1" && exec 9>lock && flock -n 9 && echo ready && read -r line <ask && printf '%s\n' "$line" && exec cat`
)

// launchTimeout limits how long the ends may take for immediate actions.
const launchTimeout = 20 * time.Second

// workDirs holds the directories for the files of the two ends, which are separate for each copy.
type workDirs struct{ near, far string }

// launch runs all ranks and returns the output of rank 0.
func (m *mpi) launch(ctx context.Context, t *test.Trial, rows []row, seconds float64) ([]byte, error) {
	w, err := prepare(ctx, t)
	if err != nil {
		return nil, err
	}
	defer removeDirs(context.WithoutCancel(ctx), t, w)
	near, err := inLayer(ctx, t.Near, w.near)
	if err != nil {
		return nil, err
	}
	far, err := inLayer(ctx, t.Far, w.far)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked, err := listen(ctx, t.Near, w.near)
	if err != nil {
		return nil, err
	}
	defer asked.Close()
	ended := make(chan error, 1)
	go func() {
		err := daemon(ctx, far, pinned(t.Far, t.Near), asked)
		asked.Close()
		if err != nil {
			cancel() // otherwise mpirun would wait for it
		}
		ended <- err
	}()
	here := *t
	here.Near = near
	out, _, err := here.Measure(ctx, "orterun", m.orterun(t, w, rows, seconds)...)
	if err != nil {
		cancel()
		return nil, errors.Join(err, <-ended)
	}
	select {
	case err = <-ended:
	case <-time.After(launchTimeout):
		cancel()
		err = <-ended
		if ctx.Err() != nil { // the lab killed it after everything was measured
			err = nil
		}
	}
	return out, err
}

// prepare creates the directories of this copy, the agent script and its FIFO.
func prepare(ctx context.Context, t *test.Trial) (workDirs, error) {
	w := workDirs{directory(t.Near, t.Copy), directory(t.Far, t.Copy)}
	for p, script := range map[*place.Place]string{
		t.Near: `rm -rf "$1" && mkdir -p "$1" && mkfifo "$1/ask"`,
		t.Far:  `rm -rf "$1" && mkdir -p "$1"`,
	} {
		dir := w.near
		if p == t.Far {
			dir = w.far
		}
		if strings.ContainsAny(dir, " \t\n'\"\\$") {
			return w, problem.New(problem.Unable, "mpirun does not support the directory %q", dir).At(p.Name).
				Try("use a directory without blanks and quotes")
		}
		if err := p.Run(ctx, host.Command{Args: []string{"/bin/sh", "-c", script, "sh", dir}}); err != nil {
			return w, err
		}
	}
	return w, t.Near.Put(ctx, host.File{Path: w.near + "/agent", Content: []byte(agent), Mode: 0o644})
}

func directory(p *place.Place, n int) string {
	dir := p.Dir
	if dir == "" {
		dir = "/tmp"
	}
	return path.Join(dir, "orrery-mpi", strconv.Itoa(n))
}

// removeDirs removes the directories. The files of a session remain there if mpirun was killed.
func removeDirs(ctx context.Context, t *test.Trial, w workDirs) {
	_ = t.Near.Run(ctx, host.Command{Args: []string{"rm", "-rf", w.near}})
	_ = t.Far.Run(ctx, host.Command{Args: []string{"rm", "-rf", w.far}})
}
