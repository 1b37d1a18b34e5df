package disk

import (
	"bytes"
	"errors"
	"syscall"

	"orrery/internal/problem"
	"orrery/internal/strict/jsonlimit"
)

// jobResult holds the results of a fio job.
type jobResult struct {
	Version string          `json:"version"`
	Read    directionResult `json:"read"`
	Write   directionResult `json:"write"`
	User    float64         `json:"user_cpu"`   // percent of one processor
	System  float64         `json:"system_cpu"` // percent of one processor
	Disks   []string        `json:"disks"`      // disks that served the job, as far as fio knows
}

// A directionResult holds the results for one direction.
type directionResult struct {
	Bytes   int64   `json:"bytes"`
	Rate    float64 `json:"rate"` // B/s
	IOPS    float64 `json:"iops"` // 1/s
	Runtime float64 `json:"runtime"`
	Median  float64 `json:"p50"` // of completion latency, in s
	Tail    float64 `json:"p99"` // s
}

// fioOutput is the output of fio --output-format=json. With --group_reporting it has one job.
type fioOutput struct {
	Version string `json:"fio version"`
	Jobs    []struct {
		Error  int           `json:"error"`
		Read   *fioDirection `json:"read"`
		Write  *fioDirection `json:"write"`
		User   float64       `json:"usr_cpu"`
		System float64       `json:"sys_cpu"`
	} `json:"jobs"`
	Disks []struct {
		Name string `json:"name"`
	} `json:"disk_util"`
}

type fioDirection struct {
	Bytes   int64   `json:"io_bytes"`
	Rate    float64 `json:"bw_bytes"`
	IOPS    float64 `json:"iops"`
	Runtime float64 `json:"runtime"` // ms
	Latency struct {
		Percentile map[string]float64 `json:"percentile"` // ns
	} `json:"clat_ns"`
}

func (r *fioDirection) result() directionResult {
	const ms, ns = 1e-3, 1e-9
	return directionResult{
		Bytes: r.Bytes, Rate: r.Rate, IOPS: r.IOPS, Runtime: ms * r.Runtime,
		Median: ns * r.Latency.Percentile["50.000000"], Tail: ns * r.Latency.Percentile["99.000000"],
	}
}

// parseFio parses the output of fio. Notes may precede the JSON.
func parseFio(text []byte) (*jobResult, error) {
	begin := bytes.Index(text, []byte("{\n"))
	var r fioOutput
	err := errors.New("fio printed nothing")
	if begin >= 0 {
		err = jsonlimit.Unmarshal(text[begin:], &r)
	}
	if err != nil {
		return nil, problem.New(problem.Failed, "the output of fio is not complete JSON (%d bytes)", len(text)).Because(err).
			Try("check whether it was killed")
	}
	if len(r.Jobs) != 1 || r.Jobs[0].Read == nil || r.Jobs[0].Write == nil {
		return nil, problem.New(problem.Failed, "the output of %s has %d jobs instead of one with read and write", r.Version,
			len(r.Jobs)).
			Try("the lab supports the output of fio 3.33 and compatible versions")
	}
	j := r.Jobs[0]
	if j.Error != 0 {
		return nil, problem.New(problem.Failed, "fio failed").Because(syscall.Errno(j.Error)).Try("run it manually there")
	}
	done := &jobResult{Version: r.Version, Read: j.Read.result(), Write: j.Write.result(), User: j.User, System: j.System,
		Disks: []string{}}
	for _, d := range r.Disks {
		done.Disks = append(done.Disks, d.Name)
	}
	return done, nil
}
