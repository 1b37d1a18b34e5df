package siteverb

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"orrery/internal/cli/verb"
	"orrery/internal/host"
)

// The pause between two checks of check --watch. It grows with the time that one takes, so that a large
// site does not keep a processor busy.
const (
	minWatchPause = time.Second
	watchShare    = 10
)

// watchCheck checks again and again until ctx ends, and prints the result when it is another one. It
// compares results and not files: a site may read files from elsewhere, such as shared roles.
func watchCheck(ctx context.Context, out io.Writer, once func(out io.Writer) error,
	pause func(ctx context.Context, took time.Duration) error) error {
	var last []byte
	for {
		var now bytes.Buffer
		began := time.Now()
		if err := once(&now); err != nil {
			verb.PrintError(&now, err)
		}
		took := time.Since(began)
		if !bytes.Equal(now.Bytes(), last) {
			fmt.Fprintf(out, "%s\n%s\n", began.Format(time.TimeOnly), now.Bytes())
			last = now.Bytes()
		}
		if pause(ctx, took) != nil {
			return nil // the user ended it
		}
	}
}

func watchPause(ctx context.Context, took time.Duration) error {
	return host.Sleep(ctx, max(minWatchPause, watchShare*took))
}
