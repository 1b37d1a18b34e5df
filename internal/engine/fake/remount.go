package fake

import (
	"context"
	"slices"

	"orrery/internal/engine"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Remount changes which volumes a running node sees. If it is interrupted half way, the record
// lists both the former and the wanted volumes.
func (e *Engine) Remount(ctx context.Context, n *spec.Node) error {
	what := e.begin(ctx, "Remount", n.Name)
	if what.err != nil {
		return what.err
	}
	halfway := what.halfway(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	existing, err := e.find(engine.RefOf(n))
	if err != nil {
		return err
	}
	if !existing.running() {
		return engine.NotRunning(engine.RefOf(n))
	}
	if (!e.Can.Remount || n.VM.Disk != "") && !slices.Equal(existing.spec.Mounts, n.Mounts) {
		return problem.New(problem.Unable, "node %s runs: the engine cannot change its volumes", n.Name)
	}
	shall := existing.spec
	shall.Mounts = slices.Clone(n.Mounts)
	if err := checkExclusive(e.nodes, &shall); err != nil {
		return err
	}
	e.volumes.make(n)
	if halfway != nil {
		rest := slices.DeleteFunc(existing.spec.Mounts, func(m spec.Mount) bool { return slices.Contains(n.Mounts, m) })
		existing.spec.Mounts = append(rest, n.Mounts...)
		return halfway
	}
	existing.spec = shall
	return nil
}
