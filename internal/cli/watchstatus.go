package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/visible"
)

// everySecond is how often status --watch looks.
const everySecond = time.Second

// watchStatus shows how the nodes are again and again, until it is interrupted: on a terminal in place, else one below the other.
func (a *app) watchStatus(ctx context.Context, how *survey) error {
	if terminal, ok := screen.Of(a.out); ok {
		return screen.Watch(ctx, a.in, terminal, everySecond, func(width int) ([]string, error) { return a.frame(ctx, how, width) })
	}
	for {
		err := a.survey(ctx, how, 0)
		var status problem.Status
		if err != nil && !errors.As(err, &status) {
			return err
		}
		if r, ok := a.out.(*reply.Reply); ok {
			r.Finish(err)
		} else {
			fmt.Fprintln(a.out)
		}
		if host.Pause(ctx, everySecond) != nil {
			return nil
		}
	}
}

// frame gives how the nodes are; what goes wrong is shown in its place.
func (a *app) frame(ctx context.Context, how *survey, width int) ([]string, error) {
	var text bytes.Buffer
	b := a.another()
	b.out, b.err = &text, &text
	err := b.survey(ctx, how, width)
	var status problem.Status
	if errors.As(err, &status) {
		err = nil
	}
	if err != nil {
		printError(&text, err)
	}
	return strings.Split(strings.TrimSuffix(visible.Text(text.String()), "\n"), "\n"), err
}
