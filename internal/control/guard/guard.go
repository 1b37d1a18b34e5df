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

// Start starts a process that lets nodes go on if this one is killed while they stand still; nobody
// else might come for hours. It ends when it is let go.
func Start(dirs host.Dirs, nodes []*spec.Node) (letGo func(), err error) {
	args := []string{"thaw"}
	for _, n := range nodes {
		args = append(args, strings.Join([]string{n.Engine, n.Site, strconv.Itoa(n.ID), n.Name}, "/"))
	}
	cmd := host.Program(context.Background(), "/proc/self/exe", args...) // a terminal that is closed does not end it
	cmd.Env = append(os.Environ(), "ORRERY_STATE="+dirs.State, "ORRERY_RUN="+dirs.Run)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, problem.New(problem.Failed, "the process that thaws nodes cannot be started").Because(err)
	}
	return func() {
		_, _ = io.WriteString(in, allGoOn)
		_ = in.Close()
		_ = cmd.Wait()
	}, nil
}

// allGoOn is what the guard reads if it has nothing to do.
const allGoOn = "done"

// Thaw is what the guard does: it waits until the process that has started it says, by from, that
// all nodes go on, or has ended; then it lets them go on. Nodes are named as ENGINE/SITE/ID/NAME.
func Thaw(ctx context.Context, dirs host.Dirs, from io.Reader, nodes []string) error {
	said, _ := io.ReadAll(from)
	if string(said) == allGoOn {
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
