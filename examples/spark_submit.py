"""The command line for spark-submit, which wants a file to run:

spark-submit --master yarn examples/spark_submit.py -q gc plan s3://bucket/lake#mine --spark --json
"""

from desilt.__main__ import main

if __name__ == "__main__":
    main()
