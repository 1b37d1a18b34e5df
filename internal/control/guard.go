package control

import (
	"context"
	"io"
	"os"
	"strconv"
	"strings"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Guard starts a process that lets nodes go on if this one is killed while they stand still; nobody else might come for hours. It
// ends when it is let go.
func (c *Session) Guard(nodes ...*spec.Node) (letGo func(), err error) {
	args := []string{"thaw"}
	for _, n := range nodes {
		args = append(args, strings.Join([]string{n.Engine, n.Site, strconv.Itoa(n.ID), n.Name}, "/"))
	}
	cmd := host.Program(context.Background(), "/proc/self/exe", args...) // a terminal that is closed does not end it
	cmd.Env = append(os.Environ(), "ORRERY_STATE="+c.Dirs.State, "ORRERY_RUN="+c.Dirs.Run)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, problem.New(problem.Failed, "the process that would let nodes go on cannot be started").Because(err)
	}
	return func() {
		_, _ = io.WriteString(in, AllGoOn)
		_ = in.Close()
		_ = cmd.Wait()
	}, nil
}

// AllGoOn is what the guard reads if it has nothing to do.
const AllGoOn = "done"
