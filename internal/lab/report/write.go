package report

import (
	"bytes"
	"io"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// Samples writes samples.csv.
func (r *Report) Samples(w io.Writer) error { return writeSamples(w, r.Bundle.Tests, r.samples) }

// Write writes report.json, report.csv, samples.csv, report.md and report.html into a bundle. Each
// file is replaced atomically.
func (r *Report) Write(dir string) error {
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{{"report.json", r.JSON}, {"report.csv", r.CSV}, {"samples.csv", r.Samples}, {"report.md", r.Markdown},
		{"report.html", r.HTML}} {
		var b bytes.Buffer
		path := filepath.Join(dir, file.name)
		err := file.write(&b)
		if err == nil {
			err = host.WriteFile(host.File{Path: path, Content: b.Bytes(), Mode: 0o644})
		}
		if err != nil {
			return problem.New(problem.Failed, "the report cannot be written").At(path).Because(err)
		}
	}
	return nil
}
