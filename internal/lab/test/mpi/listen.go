package mpi

import (
	"context"
	"fmt"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test/net/serve"
	"orrery/internal/problem"
)

// listen starts the listener in a place and returns when it is ready. Its next line is the command
// that mpirun requests.
func listen(ctx context.Context, p *place.Place, dir string) (*serve.Dialog, error) {
	asked, err := serve.StartDialog(ctx, p, []string{"/bin/sh", "-c", listener, "sh", dir})
	if err == nil {
		var line []byte
		if line, err = asked.ReadLine(ctx, launchTimeout); err == nil && string(line) == "ready" {
			return asked, nil
		}
		asked.Close()
	}
	if err == nil {
		err = fmt.Errorf("the listener did not report that it is ready")
	}
	return nil, problem.New(problem.Failed, "the launch agent cannot be prepared").At(p.Name).Because(err)
}
