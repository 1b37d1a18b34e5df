package remote

import (
	"context"

	"orrery/internal/observe/drill"
)

// Drill makes the remote host do a drill of a service. If the connection is lost, the host puts the node back.
func (f nodeHost) Drill(ctx context.Context, r drill.Request) (drill.Result, error) {
	made, err := drillMethod.call(ctx, f.remoteHost, r)
	for _, text := range []*string{&made.Service, &made.Fault, &made.Holder, &made.Client, &made.Next} {
		*text = sanitizeText(*text)
	}
	made.Answers = sanitizeList(made.Answers)
	return made, err
}

var drillMethod = method[drill.Request, drill.Result]{
	name: "drill", callOptions: callOptions{long: true},
	answer: func(ctx context.Context, c *serverCall, r drill.Request) (drill.Result, error) {
		return c.host().Nodes.Drill(ctx, r)
	},
}
