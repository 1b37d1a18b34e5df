package disk

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// bonnie runs bonnie++. It passes half of the file size (-s) as the memory size (-r), because
// bonnie++ refuses a file that is not twice as large as memory. A label warns when the file fits
// into the page cache.
type bonnie struct {
	*workspace
	fittedSize
}

func (b *bonnie) Needs() test.Needs {
	return test.Needs{Packages: []string{"bonnie++"}, Runs: []string{"bonnie++"}, Disk: int64(b.MaxSize)}
}

func (b *bonnie) Figures() []test.Figure {
	var all []test.Figure
	for _, c := range b.columns(b.Characters) {
		all = append(all, test.Figure{Name: c.figure, Unit: c.unit, Better: test.More, Aggregate: test.Sum})
	}
	return all
}

// columns returns the columns that a run measures, with or without those for single characters.
func (b *bonnie) columns(characters bool) []column {
	var all []column
	if characters {
		all = append(all, characterColumns...)
	}
	all = append(all, blockColumns...)
	if b.Files > 0 {
		all = append(all, fileColumns...)
	}
	return all
}

// Time assumes four passes over the file at 200 MB/s, the seeks, 2000 files a second, and ten
// seconds for each test of single characters. bonnie++ writes and reads the same number of them for
// any size.
func (b *bonnie) Time() time.Duration {
	all := seconds(4*float64(b.size(b.Size))/200e6+float64(b.Files)*1024/2000) + 2*time.Second
	if b.Characters {
		all += 2 * 10 * time.Second
	}
	return all
}

func (o *options) checkBonnie(wrong test.MistakeFunc) {
	if o.Size%(2<<20) != 0 {
		wrong("bonnie++ needs an even number of MiB", "size = %s", o.Size)
	}
	if o.MaxSize < o.Size || o.MaxSize%(2<<20) != 0 {
		wrong("write at least size, in an even number of MiB", "max_size = %s", o.MaxSize)
	}
	if o.Files < 0 || o.Files > 1000 {
		wrong("write the number of files in thousands, from 1 to 1000, or 0 for none", "files = %d", o.Files)
	}
}

func (b *bonnie) Check(ctx context.Context, t *test.Trial) error {
	// There is no option for the version. An invalid size makes bonnie++ print its usage and exit
	// at once.
	_, err := t.Near.Output(ctx, "bonnie++", "-q", "-d", "/", "-s", "0", "-n", "0", "-u", "root")
	if err != nil && !strings.Contains(err.Error(), "Version:") {
		return problem.New(problem.Unable, "bonnie++ cannot be run").At(t.Near.Name).Because(err).
			Try("the layer needs the package bonnie++")
	}
	b.forget(t)
	at, err := b.prepareDir(ctx, t)
	if err != nil {
		return err
	}
	if err := b.checkSpace(ctx, t, at.dir, b.size(b.Size)); err != nil {
		return err
	}
	return b.enlargeFile(ctx, t, at)
}

func (b *bonnie) Run(ctx context.Context, t *test.Trial) (test.Result, error) {
	at, err := b.prepareDir(ctx, t)
	if err != nil {
		return test.Result{}, err
	}
	size := b.size(b.Size)
	all, err := b.runOnce(ctx, t, at, size, b.Characters)
	if err != nil {
		return test.Result{}, err
	}
	r := test.Result{Labels: append(at.labels(b.workspace), all.labels()...),
		Detail: map[string]any{"version": all.version, "direct": at.direct, "size": int64(size)}}
	for _, c := range b.columns(b.Characters) {
		if v, ok := all.rates[c.figure]; ok {
			r.Samples = append(r.Samples, test.Sample{Figure: c.figure, Value: v})
		}
	}
	return r, nil
}

// runOnce runs bonnie++ with a file of the given size.
func (b *bonnie) runOnce(ctx context.Context, t *test.Trial, at workDir, size test.Bytes,
	characters bool) (*bonnieMarks,
	error) {
	mib := int64(size >> 20)
	args := []string{"-q", "-d", at.dir, "-s", strconv.FormatInt(mib, 10), "-r", strconv.FormatInt(mib/2, 10), "-n",
		strconv.Itoa(b.Files),
		"-u", "root", "-m", "orrery"}
	if !characters {
		args = append(args, "-f")
	}
	if at.direct {
		args = append(args, "-D")
	}
	out, err := t.Record(ctx, "bonnie.csv", "bonnie++", args...)
	var all *bonnieMarks
	if err == nil {
		all, err = parseBonnie(string(out), b.columns(characters))
	}
	if err != nil {
		return nil, problem.New(problem.Failed, "bonnie++").At(t.Near.Name).Because(err)
	}
	return all, nil
}

func (m *bonnieMarks) labels() []test.Label {
	var all []test.Label
	for _, figure := range m.fast {
		all = append(all, test.Label{
			Name: "too-fast", Where: figure, Why: fmt.Sprintf("bonnie++ did %q in less than half a second and reports no rate",
				figure),
			Cure: "increase size or files",
		})
	}
	return all
}
