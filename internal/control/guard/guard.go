// Package guard thaws frozen nodes if the process that froze them is killed.
package guard

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"orrery/internal/engine"
	"orrery/internal/engine/all"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Start starts a process that thaws nodes if this process is killed while they are frozen.
// Otherwise they could stay frozen for hours. The process ends when letGo is called.
func Start(dirs host.Dirs, nodes []*spec.Node) (letGo func(), err error) {
	args := []string{"thaw"}
	for _, n := range nodes {
		args = append(args, strings.Join([]string{n.Engine, n.Site, strconv.Itoa(n.ID), n.Name}, "/"))
	}
	cmd := host.Program(context.Background(), "/proc/self/exe", args...) // closing the terminal does not end it
	cmd.Env = append(os.Environ(), "ORRERY_STATE="+dirs.State, "ORRERY_RUN="+dirs.Run)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, problem.New(problem.Failed, "the process that thaws nodes cannot be started").Because(err)
	}
	return func() {
		_, _ = io.WriteString(in, allRunning)
		_ = in.Close()
		_ = cmd.Wait()
	}, nil
}

// allRunning is what the guard reads if it has nothing to do.
const allRunning = "done"

// Thaw is the guard process. It reads from until the process that started it reports that all nodes
// are running, or has ended. In the latter case, Thaw thaws the nodes. They are named as
// ENGINE/SITE/ID/NAME.
func Thaw(ctx context.Context, dirs host.Dirs, from io.Reader, nodes []string) error {
	said, _ := io.ReadAll(from)
	if string(said) == allRunning {
		return nil
	}
	engines := all.Engines(dirs, image.Open(dirs.State))
	var errs error
	for _, node := range nodes {
		part := strings.SplitN(node, "/", 4)
		if len(part) < 4 {
			return problem.New(problem.Usage, "%q is not a node", node)
		}
		id, err := strconv.Atoi(part[2])
		freezer, ok := engines[part[0]].(engine.Freezer)
		if err != nil || !ok {
			return problem.New(problem.Usage, "%q is not a node", node)
		}
		errs = errors.Join(errs, freezer.Thaw(context.WithoutCancel(ctx), engine.Ref{Site: part[1], ID: id, Name: part[3]}))
	}
	return errs
}
