# One recipe for each thing that a person does. All of them set up what they need; the second time costs nothing.

PORT ?= 3000
PYTHON ?= python3
# How many histories to simulate, or to compare with Apache Kafka, and how many of the latter also on the real table.
N ?= 1000
REAL ?= 20
# Processes that tests run in, each with some memory for its Spark: twice two cores, for much is waited for.
JOBS ?= 4
# For how long to try new histories; SEED is that of the first round.
MINUTES ?= 10
# How often to kill each server of a lake.
KILLS ?= 20
# What to measure, and how often; RECORDS scales it.
CASE ?= W1
ROUNDS ?= 5
export PYTHON
# Hundreds of processes import the same modules: the first compiles them for all, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

# Dagster keeps its runs and events here between starts.
DAGSTER_HOME := $(CURDIR)/.dagster

# What needs neither Spark nor Java, Kafka or Dagster, and takes no time.
QUICK := conformance engine engine_story erasure frozen_homes ingest kafka_client kernels log model passes receipts restore scenarios sim sources storage table topics_file

bin := .venv/bin
venv := .venv/.installed
dagster := .dagster/.prepared

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo demo-kafka demo-lake quick test sim soak soak-broker soak-lake dev lint fuzz readers bench growth docs clean java

help: ## show this
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: export DAGSTER_HOME := $(DAGSTER_HOME)
demo: java $(venv) $(dagster) ## compact the history of this repository and tell what happened
	@$(bin)/python -m examples.demo

demo-kafka: export DAGSTER_HOME := $(DAGSTER_HOME)
demo-kafka: java $(venv) $(dagster) ## ingest and compact a topic of a real Kafka broker, started for it (needs Maven)
	@$(bin)/python -m examples.demo_kafka

demo-lake: java $(venv) ## the whole story on S3, Postgres, an Iceberg REST catalog and a Spark cluster (needs Maven, PostgreSQL)
	@$(bin)/python -m examples.demo_lake

quick: export JAVA_HOME := /nonexistent
quick: $(venv) ## check what one runs while working: style, rules, kernels, tables, with few examples; no Java
	@$(bin)/ruff check
	@$(bin)/ruff format --check
	@$(bin)/python -m pytest -n $(JOBS) -m "not spark" --hypothesis-profile quick $(QUICK:%=tests/%)

# Each process of the tests would rewrite their asserts for itself: the first collects while one core is at the types.
# Not by $(MAKE): make -n carries such a line out.
test: java $(venv) ## check everything: style, types, layers, behaviour
	@{ $(bin)/python -m tests.java_classes && { $(bin)/python -m pytest --collect-only -q >/dev/null 2>&1 || true; }; } & \
		ahead=$$!; make --no-print-directory lint && wait $$ahead
	@$(bin)/python -m pytest -n $(JOBS)

sim: $(venv) ## simulate histories with faults until one breaks; longer: make sim N=10000, again: make sim SEED=7 N=1
	@$(bin)/python -m tests.sim.run --histories $(N) --jobs $(JOBS) $(if $(SEED),--seed $(SEED))

soak: java $(venv) ## try new histories until one fails; longer: make soak MINUTES=600, again: make soak SEED=7
	@$(bin)/python -m tests.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

soak-broker: java $(venv) ## play with topics of a live broker beside its cleaner; longer: make soak-broker MINUTES=600, again: SEED=7
	@$(bin)/python -m tests.broker.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

soak-lake: java $(venv) ## kill and disturb a lake of local servers; longer: make soak-lake KILLS=200, again: SEED=7
	@$(bin)/python -m tests.lake.soak --kills $(KILLS) $(if $(SEED),--seed $(SEED))

dev: export DAGSTER_HOME := $(DAGSTER_HOME)
dev: java $(venv) $(dagster) ## open the Dagster UI on http://localhost:3000; another port: make dev PORT=3100
	@scripts/dev $(PORT)

lint: $(venv) ## check style, types and layers only
	@$(bin)/ruff check
	@$(bin)/ruff format --check
	@$(bin)/mypy
	@$(bin)/lint-imports

fuzz: java $(venv) ## compare keptlog with Apache Kafka on random histories; longer: make fuzz N=10000 REAL=100 SEED=1
	@$(bin)/python -m tests.kafka.fuzz --scripts $(N) --real $(REAL) $(if $(SEED),--seed $(SEED))

docs: $(venv) ## make the site of the docs: build/docs/index.html
	@$(bin)/python -m scripts.site

readers: java $(venv) ## try other engines on a topic and on a bucket, those too that are fetched for it (1.3 GB, once)
	@$(bin)/python -m pytest tests/readers --fetched

bench: java $(venv) ## measure keptlog beside others, CASE=W1 to W11; smaller: make bench CASE=W3 RECORDS=100000 ROUNDS=1
	@$(bin)/python -m benchmarks.run $(CASE) --rounds $(ROUNDS) $(if $(RECORDS),--records $(RECORDS))

growth: java $(venv) ## measure what a clean costs as its work grows; smaller: make growth RECORDS=200000
	@$(bin)/python -m benchmarks.growth $(if $(RECORDS),--records $(RECORDS))

clean: ## remove all that was set up or cached here; topics and runs stay
	@rm -rf .venv .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache build *.egg-info spark-warehouse
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

java:
	@scripts/bootstrap java

$(venv): pyproject.toml constraints.txt scripts/bootstrap scripts/wheel.cfg
	@scripts/bootstrap venv
	@touch $@

$(dagster): | $(venv)
	@scripts/bootstrap dagster
	@touch $@
