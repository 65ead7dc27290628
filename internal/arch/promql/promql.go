// Package promql finds the names in an expression of Prometheus: which series it
// selects, by which labels, and by which labels it groups.
//
// It knows as much of the language as dashboards and alerts of this repository
// use, and refuses the rest. The real parser would bring more modules than the
// product has.
package promql

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Selector is one selection of series.
type Selector struct {
	Metric string
	Labels []string // that are matched
}

// Expr is what an expression names.
type Expr struct {
	Selectors []Selector
	Grouped   []string // labels of by, without, on, ignoring, group_left, group_right
}

var (
	token = regexp.MustCompile(`^(?:"(?:[^"\\]|\\.)*"|[a-zA-Z_:][a-zA-Z0-9_:]*|\$[a-zA-Z_]+|[0-9][0-9.]*(?:ms|[smhdwy])?|=~|!~|!=|==|>=|<=|[-+*/%^<>=(){}\[\],])`)
	name  = regexp.MustCompile(`^[a-zA-Z_:]`)

	functions = []string{
		"sum", "min", "max", "avg", "count", "topk", "bottomk", "quantile",
		"rate", "increase", "irate", "delta", "histogram_quantile", "time", "abs", "clamp_min", "clamp_max", "absent",
		"max_over_time", "min_over_time", "avg_over_time", "label_replace",
	}
	groupings = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	operators = []string{"and", "or", "unless", "bool", "offset"}
)

// Parse reads an expression.
func Parse(text string) (Expr, error) {
	tokens, err := split(text)
	if err != nil {
		return Expr{}, err
	}
	p := parser{tokens: tokens}
	for !p.done() {
		if err := p.step(); err != nil {
			return Expr{}, err
		}
	}
	if len(p.open) > 0 {
		return Expr{}, fmt.Errorf("%q is not closed", p.open[len(p.open)-1])
	}
	if len(p.expr.Selectors) == 0 {
		return Expr{}, fmt.Errorf("it selects nothing")
	}
	return p.expr, nil
}

func split(text string) ([]string, error) {
	var tokens []string
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		found := token.FindString(rest)
		if found == "" {
			return nil, fmt.Errorf("cannot understand %q", rest)
		}
		tokens, rest = append(tokens, found), rest[len(found):]
	}
	return tokens, nil
}

type parser struct {
	tokens []string
	open   []string
	expr   Expr
}

func (p *parser) done() bool { return len(p.tokens) == 0 }

func (p *parser) peek() string {
	if p.done() {
		return ""
	}
	return p.tokens[0]
}

func (p *parser) next() string {
	t := p.peek()
	p.tokens = p.tokens[min(1, len(p.tokens)):]
	return t
}

var closes = map[string]string{")": "(", "]": "["}

// step reads one token, or as many as belong to a name.
func (p *parser) step() error {
	switch t := p.next(); {
	case t == "(" || t == "[":
		p.open = append(p.open, t)
	case closes[t] != "":
		if len(p.open) == 0 || p.open[len(p.open)-1] != closes[t] {
			return fmt.Errorf("%q closes nothing", t)
		}
		p.open = p.open[:len(p.open)-1]
	case t == "{" || t == "}":
		return fmt.Errorf("%q stands behind no name", t)
	case !name.MatchString(t), slices.Contains(operators, t):
	case slices.Contains(groupings, t):
		labels, err := p.list("(", ")", func() error { return nil })
		p.expr.Grouped = append(p.expr.Grouped, labels...)
		return err
	case p.peek() == "(" || slices.ContainsFunc(groupings, func(g string) bool { return g == p.peek() }) && slices.Contains(functions, t):
		if !slices.Contains(functions, t) {
			return fmt.Errorf("there is no function %q", t)
		}
	default:
		return p.selector(t)
	}
	return nil
}

// selector reads what stands behind the name of a metric.
func (p *parser) selector(metric string) error {
	s := Selector{Metric: metric}
	if p.peek() == "{" {
		labels, err := p.list("{", "}", p.matcher)
		if err != nil {
			return err
		}
		s.Labels = labels
	}
	p.expr.Selectors = append(p.expr.Selectors, s)
	return nil
}

// matcher reads what stands behind a label that is matched.
func (p *parser) matcher() error {
	if op := p.next(); !slices.Contains([]string{"=", "!=", "=~", "!~"}, op) {
		return fmt.Errorf("%q matches nothing", op)
	}
	if value := p.next(); !strings.HasPrefix(value, `"`) {
		return fmt.Errorf("%q is no quoted text", value)
	}
	return nil
}

// list reads labels between brackets, each with what stands behind it.
func (p *parser) list(begin, end string, behind func() error) ([]string, error) {
	if t := p.next(); t != begin {
		return nil, fmt.Errorf("%q where %q was expected", t, begin)
	}
	var labels []string
	for p.peek() != end {
		label := p.next()
		if !name.MatchString(label) {
			return nil, fmt.Errorf("%q is no label", label)
		}
		if err := behind(); err != nil {
			return nil, err
		}
		labels = append(labels, label)
		if p.peek() != end && p.next() != "," {
			return nil, fmt.Errorf("a comma is missing behind label %q", label)
		}
	}
	p.next()
	return labels, nil
}
