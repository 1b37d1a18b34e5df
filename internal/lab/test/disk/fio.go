package disk

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"orrery/internal/lab/test"
	"orrery/internal/problem"
	"orrery/internal/text/pattern"
)

// fio runs fio jobs one after another on one file. The file is written in full beforehand, so that
// writes overwrite it and no figure depends on what an earlier job allocated.
type fio struct {
	*workspace
	list []job
}

func (f *fio) Needs() test.Needs {
	return test.Needs{Packages: []string{"fio"}, Runs: []string{"fio"}, Disk: int64(f.Size)}
}

func (f *fio) Figures() []test.Figure {
	var all []test.Figure
	for _, j := range f.list {
		all = append(all, j.figures(f.Latency)...)
	}
	return all
}

// Time returns the time of the jobs, including their start.
func (f *fio) Time() time.Duration {
	return time.Duration(len(f.list)) * (seconds(f.Seconds+f.WarmUp) + 300*time.Millisecond)
}

func (f *fio) Check(ctx context.Context, t *test.Trial) error {
	if _, err := test.Known(ctx, t.Near, fio3(), "the package fio", "fio", "--version"); err != nil {
		return err
	}
	f.forget(t)
	_, err := f.file(ctx, t)
	return err
}

const fioFile = "fio.data"

var fio3 = pattern.New(`^fio-3\.`)

// file creates and fills the file of a copy, unless it exists.
func (f *fio) file(ctx context.Context, t *test.Trial) (workDir, error) {
	at, err := f.prepareDir(ctx, t)
	if err != nil {
		return at, err
	}
	file := path.Join(at.dir, fioFile)
	if shell(ctx, t.Near, `test "$(stat -c %s "$1")" = "$2"`, file, strconv.FormatInt(int64(f.Size), 10)) == nil {
		return at, nil
	}
	if err := f.checkSpace(ctx, t, at.dir, f.Size); err != nil {
		return at, err
	}
	out, err := t.Near.Output(ctx, "fio", "--name=layout", "--filename="+file, fmt.Sprintf("--size=%d", f.Size),
		"--rw=write", "--bs=1M",
		"--ioengine=psync", "--end_fsync=1", "--direct="+boolFlag(at.direct), "--output-format=json")
	if _, unread := parseFio(out); unread != nil || err != nil {
		return at, problem.New(problem.Failed, "fio cannot create %s", file).At(t.Near.Name).
			Because(moreSpecific(err, unread))
	}
	return at, nil
}

func boolFlag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// fioDetail is stored in the bundle beside the figures.
type fioDetail struct {
	Version string                `json:"version"`
	Direct  bool                  `json:"direct"`
	Jobs    map[string]*jobResult `json:"jobs"`
}

// Run runs the jobs. In each job, the copies start together.
func (f *fio) Run(ctx context.Context, t *test.Trial) (test.Result, error) {
	at, err := f.file(ctx, t)
	if err != nil {
		return test.Result{}, err
	}
	d := fioDetail{Direct: at.direct, Jobs: map[string]*jobResult{}}
	r := test.Result{Labels: at.labels(f.workspace), Detail: &d}
	for _, j := range f.list {
		done, err := f.job(ctx, t, at, j)
		if err != nil {
			return test.Result{}, err
		}
		d.Version, d.Jobs[j.name()] = done.Version, done
		r.Moved = r.Moved.Add(test.Moved{Read: done.Read.Bytes, Written: done.Write.Bytes})
		samples, err := f.samples(j, done)
		if err != nil {
			return test.Result{}, problem.New(problem.Failed, "fio: %s", j.name()).At(t.Near.Name).Because(err)
		}
		r.Samples = append(r.Samples, samples...)
		series, err := f.series(ctx, t, at, j)
		if err != nil {
			return test.Result{}, err
		}
		r.Series = append(r.Series, series...)
	}
	return r, nil
}

func (f *fio) job(ctx context.Context, t *test.Trial, at workDir, j job) (*jobResult, error) {
	out, err := t.Record(ctx, strings.NewReplacer(" ", "-", "/", "-").Replace(j.name())+".json", "fio",
		f.arguments(at, j)...)
	done, unread := parseFio(out)
	if err := moreSpecific(err, unread); err != nil {
		return nil, problem.New(problem.Failed, "fio: %s", j.name()).At(t.Near.Name).Because(err)
	}
	return done, nil
}

// arguments returns the arguments of a job. fio uses threads, not processes, that share the file.
// If a job is sequential, each thread has a separate part of the file.
func (f *fio) arguments(at workDir, j job) []string {
	engine := f.Engine
	if engine == "" {
		if engine = "psync"; j.Depth > 1 {
			engine = "libaio"
		}
	}
	size := int64(f.Size)
	args := []string{
		"--name=orrery", "--filename=" + path.Join(at.dir, fioFile), "--rw=" + j.RW, fmt.Sprintf("--bs=%d", j.Block),
		fmt.Sprintf("--iodepth=%d", j.Depth),
		fmt.Sprintf("--numjobs=%d", j.Threads), "--thread", "--group_reporting", "--ioengine=" + engine,
		"--direct=" + boolFlag(at.direct),
		"--time_based", fmt.Sprintf("--ramp_time=%dms", seconds(f.WarmUp).Milliseconds()),
		fmt.Sprintf("--runtime=%dms", seconds(f.Seconds).Milliseconds()), "--norandommap", "--randrepeat=0",
		"--percentile_list=50:99", "--output-format=json",
	}
	if j.sequential() && j.Threads > 1 {
		size = size / int64(j.Threads) / int64(j.Block) * int64(j.Block)
		args = append(args, fmt.Sprintf("--offset_increment=%d", size))
	}
	if j.mixed() {
		args = append(args, fmt.Sprintf("--rwmixread=%d", j.Read))
	}
	if j.writes() && !at.direct {
		args = append(args, "--end_fsync=1") // its time is part of the figure
	}
	return append(append(args, f.logged(at)...), fmt.Sprintf("--size=%d", size))
}

func (f *fio) samples(j job, done *jobResult) ([]test.Sample, error) {
	var all []test.Sample
	for _, s := range j.streams() {
		way := done.Read
		if s.write {
			way = done.Write
		}
		value := way.IOPS
		if j.Unit == bytesPerSecond {
			value = way.Rate
		}
		if value <= 0 {
			return nil, problem.New(problem.Failed, "fio completed no block of %q in %v s", s.figure, f.Seconds).
				Try("increase seconds")
		}
		all = append(all, test.Sample{Figure: s.figure, Value: value})
		if f.Latency {
			all = append(all, test.Sample{Figure: s.median(), Value: way.Median}, test.Sample{Figure: s.tail(), Value: way.Tail})
		}
	}
	return all, nil
}

// moreSpecific returns the more specific error: how fio ended, or what is wrong with its output.
func moreSpecific(ended, unread error) error {
	if ended != nil {
		return shortened(ended, "fio:")
	}
	return unread
}
