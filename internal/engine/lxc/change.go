package lxc

import (
	"context"
	"strconv"

	"orrery/internal/engine"
	"orrery/internal/network"
	"orrery/internal/site/spec"
)

// Change records the desired spec of a node. If the node runs, Change also moves its links and
// applies its limits.
func (e *Engine) Change(ctx context.Context, n *spec.Node) error {
	return e.Nodes.Change(n, func() error { return e.container(engine.RefOf(n)).changeRunning(ctx, n) })
}

// changeRunning moves the links that are on the wrong bridge, all or none, and applies limits.
func (c container) changeRunning(ctx context.Context, node *spec.Node) error {
	if moves := network.MovesOf(node); len(moves) > 0 {
		if err := network.MoveLinks(ctx, moves); err != nil {
			return err
		}
	}
	if at := c.netNamespaceFile(); at != "" && !node.Staged {
		// The links may have been moved out of quarantine in one batch with those of other nodes.
		if err := network.FlushNeighbours(at); err != nil {
			return err
		}
	}
	return c.group().SetLimits(c.ref.Name, node.Limits)
}

// NetNamespace returns the file of a node's network namespace, or "" if the node does not run.
func (e *Engine) NetNamespace(ref engine.Ref) string { return e.container(ref).netNamespaceFile() }

func (p processes) netNamespaceFile() string {
	pid := p.init()
	if pid == 0 {
		return ""
	}
	return "/proc/" + strconv.Itoa(pid) + "/ns/net"
}
