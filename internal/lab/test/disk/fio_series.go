package disk

import (
	"context"
	"math"
	"path"
	"strconv"
	"strings"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// minSeriesSeconds is the minimum duration of a job for a series: shorter jobs have too few values.
const minSeriesSeconds = 3

// fioLog is the prefix of the names of fio's logs in the directory of a copy.
const fioLog = "fio-log"

// logged returns the arguments that make fio log each second of a job.
func (f *fio) logged(at workDir) []string {
	if f.Seconds < minSeriesSeconds {
		return nil
	}
	log := path.Join(at.dir, fioLog)
	return []string{"--write_bw_log=" + log, "--write_iops_log=" + log, "--log_avg_msec=1000", "--per_job_logs=0"}
}

// series reads the logs of a job and removes them.
func (f *fio) series(ctx context.Context, t *test.Trial, at workDir, j job) ([]test.Series, error) {
	if f.Seconds < minSeriesSeconds {
		return nil, nil
	}
	kind, factor := "iops", 1.0
	if j.Unit == bytesPerSecond {
		kind, factor = "bw", 1024
	}
	out, err := place.Output(ctx, t.Near, "/bin/sh", "-c", `cat "$1_$2.log"; rm -f "$1"_*`, "sh",
		path.Join(at.dir, fioLog), kind)
	if err != nil {
		return nil, problem.New(problem.Failed, "fio's log of each second of %s cannot be read", j.name()).At(t.Near.Name).
			Because(err)
	}
	read, written := parseLog(string(out), factor)
	var all []test.Series
	for _, s := range j.streams() {
		values := read
		if s.write {
			values = written
		}
		if len(values) > 1 {
			all = append(all, test.Series{Figure: s.figure, Step: 1, Values: values})
		}
	}
	return all, nil
}

// parseLog parses a log as described in fio(1), "LOG FILE FORMATS": time in ms, value, direction (0
// reads, 1 writes), … The lines of one thread follow those of another. Values of the same second
// are added. Invalid lines are skipped.
func parseLog(text string, factor float64) (read, written []float64) {
	const maxSeconds = 100_000
	for line := range strings.Lines(text) {
		words := strings.Split(line, ",")
		if len(words) < 3 {
			continue
		}
		ms, bad := strconv.ParseFloat(strings.TrimSpace(words[0]), 64)
		value, worse := strconv.ParseFloat(strings.TrimSpace(words[1]), 64)
		second := int(math.Round(ms/1000)) - 1
		if bad != nil || worse != nil || !(ms >= 500 && ms < 1000*maxSeconds) || !(value >= 0 && value <= math.MaxFloat32) {
			continue
		}
		into := &read
		switch strings.TrimSpace(words[2]) {
		case "0":
		case "1":
			into = &written
		default:
			continue
		}
		for len(*into) <= second {
			*into = append(*into, 0)
		}
		(*into)[second] += value * factor
	}
	return read, written
}
