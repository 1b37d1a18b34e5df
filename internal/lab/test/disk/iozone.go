package disk

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"time"

	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// iozone runs iozone once for each record size. Debian has it only in non-free (iozone3), so the
// layer contains it only if the user's image does.
type iozone struct{ *workspace }

// iozoneColumns lists the columns of iozone that are figures, in iozone's order.
var iozoneColumns = []string{"write", "rewrite", "read", "reread", "random read", "random write"}

func (z *iozone) Needs() test.Needs { return test.Needs{Disk: int64(z.Size)} }

func (z *iozone) Figures() []test.Figure {
	var all []test.Figure
	for _, r := range z.Records {
		for _, w := range iozoneColumns {
			all = append(all, test.Figure{Name: recordFigure(w, r), Unit: bytesPerSecond, Better: test.More,
				Aggregate: test.Sum})
		}
	}
	return all
}

func recordFigure(way string, record test.Bytes) string { return way + " " + record.String() }

// Time assumes six passes over the file at 200 MB/s.
func (z *iozone) Time() time.Duration {
	return time.Duration(len(z.Records)) * (seconds(float64(len(iozoneColumns))*float64(z.Size)/200e6) +
		200*time.Millisecond)
}

func (o *options) checkIozone(wrong test.MistakeFunc) {
	if len(o.Records) == 0 {
		wrong(`write records = ["4KiB", "64KiB", "1MiB"]`, "records is empty")
	}
	for _, r := range o.Records {
		if r%1024 != 0 || r > o.Size || r > 16<<20 {
			wrong("write sizes in whole KiB, up to 16MiB and not larger than the file", "records: %s", r)
		}
	}
	test.CheckDuplicates("records", o.Records, wrong)
}

func (z *iozone) Check(ctx context.Context, t *test.Trial) error {
	const cure = "iozone, which is Debian's package iozone3 in the part non-free: components = [\"main\", \"non-free\"] and " +
		"packages = [\"iozone3\"] at the head of the experiment, or program = \"fio\""
	if _, err := test.Known(ctx, t.Near, regexp.MustCompile("Iozone"), cure, "iozone", "-v"); err != nil {
		return err
	}
	z.forget(t)
	at, err := z.prepareDir(ctx, t)
	if err != nil {
		return err
	}
	return z.checkSpace(ctx, t, at.dir, z.Size)
}

// Run runs iozone for each record size. In each run, the copies start together.
func (z *iozone) Run(ctx context.Context, t *test.Trial) (test.Result, error) {
	at, err := z.prepareDir(ctx, t)
	if err != nil {
		return test.Result{}, err
	}
	detail := map[string]any{"direct": at.direct}
	r := test.Result{Labels: at.labels(z.workspace), Detail: detail}
	for _, record := range z.Records {
		args := []string{"-i", "0", "-i", "1", "-i", "2", "-e", "-s", fmt.Sprintf("%dk", z.Size>>10), "-r",
			fmt.Sprintf("%dk", record>>10),
			"-f", path.Join(at.dir, "iozone.tmp")}
		if at.direct {
			args = append(args, "-I")
		}
		out, err := t.Record(ctx, "iozone-"+record.String()+".txt", "iozone", args...)
		rates, version, unread := parseIozone(string(out))
		if err != nil {
			unread = shortened(err, "Can not", "Error", "iozone:")
		}
		if unread != nil {
			return test.Result{}, problem.New(problem.Failed, "iozone with records of %s", record).At(t.Near.Name).
				Because(unread)
		}
		detail["version"] = version
		for i, w := range iozoneColumns {
			r.Samples = append(r.Samples, test.Sample{Figure: recordFigure(w, record), Value: rates[i]})
		}
	}
	return r, nil
}
